# What the findings share; each sources it and runs by itself.
#
# Exit status: 0 when the behavior is as recorded, 1 when it changed, 2 when the
# finding cannot run, since a package cannot be downloaded, for example.
# shellcheck shell=bash

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Modules that are written here, and nothing of the caller's.
export GOWORK=off GOFLAGS=-mod=mod
packages=()

# cannot ends the finding, which could not run.
cannot() {
	echo "cannot run: $1" >&2
	if [[ -s $work/log ]]; then cat "$work/log" >&2; fi
	exit 2
}

# module FOLDER PACKAGE@VERSION... makes a Go module below the temporary folder that
# requires these packages.
module() {
	local folder=$1
	shift
	mkdir -p "$work/$folder"
	(cd "$work/$folder" && go mod init example.com/finding && go get "$@") >"$work/log" 2>&1 || cannot "go get $*"
	packages+=("$@")
}

# kubernetes FOLDER MINOR.PATCH makes a Go module below the temporary folder that requires
# k8s.io/kubernetes of 1.MINOR.PATCH. Kubernetes takes what it requires of k8s.io from its own
# folders, which its module does not have: they are replaced.
kubernetes() {
	local folder=$1 version=$2 gomod
	gomod=$(go mod download -json "k8s.io/kubernetes@v1.$version" 2>"$work/log" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
	[[ -n $gomod ]] || cannot "go mod download k8s.io/kubernetes@v1.$version"
	mkdir -p "$work/$folder"
	{
		echo "module example.com/finding"
		sed -n 's/^go /go /p' "$gomod"
		echo "require k8s.io/kubernetes v1.$version"
		sed -n "s|^	\(k8s.io/[a-z-]*\) v0\.0\.0\( //.*\)\{0,1\}\$|replace \1 => \1 v0.$version|p" "$gomod"
	} >"$work/$folder/go.mod"
	packages+=("k8s.io/kubernetes@v1.$version")
}

# tidy FOLDER has a module require what its program imports.
tidy() { (cd "$work/$1" && go mod tidy) >"$work/log" 2>&1 || cannot "go mod tidy"; }

# program FOLDER [ARGUMENT...] builds and runs the program of a module; what it prints
# is the output of the finding.
program() {
	local folder=$1
	shift
	(cd "$work/$folder" && go build -o "$work/$folder.bin" .) >"$work/log" 2>&1 || cannot "go build"
	"$work/$folder.bin" "$@" >>"$work/seen" 2>"$work/log" || cannot "the program failed"
}

# conclude SENTENCE prints versions, behavior and output, and compares the output with
# the one on standard input, which was seen when the finding was written.
conclude() {
	cat >"$work/recorded"
	printf 'versions: %s, %s\nbehavior: %s\n' "${packages[*]}" "$(go env GOVERSION)" "$1"
	sed 's/^/  /' "$work/seen"
	if ! diff -u --label recorded --label seen "$work/recorded" "$work/seen" >"$work/difference"; then
		cat "$work/difference"
		echo "changed: the output is not the recorded one"
		exit 1
	fi
	echo "as recorded"
}
