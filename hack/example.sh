#!/usr/bin/env bash
# Deploys the example operator (examples/widget-operator of the library) onto a local
# cluster of its own and shows its features: on, in use, a value that changes while it
# runs, a replica that crashes, off, a color that is written then, and gone. "make example"
# runs it after "make all".
#
# It prints the commands that it runs and fails when something is not as it should be.
# What it starts it ends, whatever happens but SIGKILL; files stay in _output/example.
# A signal counts once the command in the foreground has ended, so send it to the process
# group, as a terminal does: the command ends, too. PATIENCE is how long it waits for
# each thing, 5m by default.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${OUT:-_output}
work=$out/example
patience=${PATIENCE:-5m}
operator=staging/src/k8s.io/feature-lifecycle/examples/widget-operator
config=$operator/config
absolute() { if [[ $1 == /* ]]; then echo "$1"; else echo "$PWD/$1"; fi; }
# kubectl finds its plugins by absolute paths only.
PATH=$(absolute "$out/bin"):$PATH
export PATH KUBECONFIG=$work/cluster/admin.kubeconfig
cluster=(local-up "--data-dir=$work/cluster" "--bin-dir=$out/bin")
# Replicas are on this machine, whatever proxy there is.
ask=(curl -fsS --noproxy '*' --max-time 10)

# Of each replica that runs, by its name.
declare -A pids=() metrics=()

step() { printf '\n=== %s\n' "$*"; }
fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# announce prints a command as it would be typed.
announce() {
	local word line='$'
	for word; do
		if [[ $word =~ ^[A-Za-z0-9_./:,=@%+-]+$ ]]; then line+=" $word"; else line+=" ${word@Q}"; fi
	done
	echo "$line"
}

# show prints a command and runs it.
show() {
	announce "$@"
	"$@"
}

# expect does so, and fails unless the command prints a text.
expect() {
	local want=$1 got
	shift
	announce "$@"
	if ! got=$("$@"); then
		printf '%s\n' "$got"
		fail "the command failed; the output should be: $want"
	fi
	printf '%s\n' "$got"
	[[ $got == "$want" ]] || fail "the output should be: $want"
}

# has fails unless a text has another one.
has() { [[ $1 == *"$2"* ]] || fail "there should be $2 in: $1"; }

# ended waits for a process to end, for a time at most, and is false if it does not.
ended() { timeout --foreground --signal=KILL "$1" tail "--pid=$2" --sleep-interval=0.2 -f /dev/null 2>/dev/null; }

# finish ends what runs: it is what happens whenever the script ends. Replicas first, so
# that they can say goodbye.
finish() {
	local status=$? name
	trap - EXIT
	trap '' INT TERM HUP
	set +e
	if ((${#pids[@]})); then kill -TERM "${pids[@]}" 2>/dev/null; fi
	for name in "${!pids[@]}"; do
		ended 30s "${pids[$name]}" || kill -KILL "${pids[$name]}"
	done
	if [[ -e $work/cluster/state.json ]] && ! "${cluster[@]}" down >/dev/null; then
		echo "The cluster of the example may still run; end it with: ${cluster[*]} down" >&2
		if ((!status)); then status=1; fi
	fi
	if ((status)); then
		for name in "$work"/*.log; do
			if [[ -e $name ]]; then
				echo "The end of $name:" >&2
				tail -n 15 "$name" >&2
			fi
		done
		echo "The example failed. The logs of replicas are $work/*.log, those of the cluster in $work/cluster/logs" >&2
	fi
	exit "$status"
}

# choose sets port to one that no process listens on.
choose() {
	while :; do
		port=$((20000 + RANDOM % 10000))
		if [[ " ${metrics[*]} " != *" $port "* ]] && ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
	done
}

# start starts the replica with a name, with the identity of the service account. Its
# metrics have the port that they had.
start() {
	local name=$1 port
	if [[ -z ${metrics[$name]:-} ]]; then
		choose
		metrics[$name]=$port
	fi
	local command=("$work/widget-operator" "--kubeconfig=$work/operator.kubeconfig" "--instance=$name" --dynamic-features=WidgetColor,WidgetUppercase
		"--metrics-bind-address=127.0.0.1:${metrics[$name]}" --health-probe-bind-address=0)
	echo "$(announce "${command[@]}") &"
	"${command[@]}" >>"$work/$name.log" 2>&1 &
	pids[$name]=$!
}

# leader prints which replica reconciles Widgets, by controller-runtime's own metric.
leader() {
	local name
	for name in "${!pids[@]}"; do
		if "${ask[@]}" "http://127.0.0.1:${metrics[$name]}/metrics" | grep '^leader_election_master_status{.*} 1$' >/dev/null; then
			echo "$name"
			return
		fi
	done
	fail "no replica reconciles"
}

# identity writes operator.kubeconfig: the administrator's without the administrator, so
# that replicas have the identity of the service account and no other. Only who runs this
# may read it, and the token is in no command line, which all on this machine can read.
identity() (
	umask 077
	local file=$work/operator.kubeconfig admin token context contexts
	local config=(kubectl config "--kubeconfig=$file")
	admin=$(kubectl config view --minify -o jsonpath='{.users[0].name}')
	token=$(kubectl create token -n widgets widget-operator)
	printf '%s' "$token" >"$work/token"
	cp "$KUBECONFIG" "$file"
	"${config[@]}" set users.widget-operator.tokenFile "$(absolute "$work/token")"
	"${config[@]}" set-context --current --user=widget-operator
	contexts=$("${config[@]}" view -o "jsonpath={.contexts[?(@.context.user==\"$admin\")].name}")
	for context in $contexts; do "${config[@]}" delete-context "$context"; done
	"${config[@]}" delete-user "$admin"
)

# stored prints what people wrote into Widgets, a field in a line.
stored() {
	kubectl get widgets -n widgets -o go-template='{{range .items}}{{$name := .metadata.name}}{{range $key, $value := .spec}}{{$name}}.spec.{{$key}}: {{$value}}
{{end}}{{range $key, $value := .metadata.labels}}{{$name}}.labels.{{$key}}: {{$value}}
{{end}}{{end}}'
}

# clusterwide prints the names of what the operator has that is in no namespace.
clusterwide() { kubectl get crd,clusterrole,clusterrolebinding -o name | { grep widget || true; }; }

command -v curl >/dev/null || fail "curl is missing, which asks replicas; install it (Debian's package of that name)"
# The cluster of a run that was killed makes way.
if [[ -e $work/cluster/state.json ]]; then "${cluster[@]}" down; fi
rm -rf "$work"
mkdir -p "$work"
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
begun=$SECONDS

step "An operator, and a cluster of its own"
show env GOWORK=off go build -C "$operator" -o "$(absolute "$work/widget-operator")" .
announce "${cluster[@]}" up --nodes=0
"${cluster[@]}" up --nodes=0 >"$work/up.log"

step "An administrator installs it: namespace, service account, definition, permissions"
show kubectl apply -f "$config/namespace.yaml" -f "$config/crd.yaml" -f "$config/rbac.yaml"
show kubectl wait crd widgets.widgets.example.com --for=condition=Established "--timeout=$patience"

step "Three replicas run, here as processes with the identity of the service account"
identity >/dev/null
for name in replica-a replica-b replica-c; do start "$name"; done
for feature in WidgetColor WidgetUppercase; do
	show kubectl wait feature -n widgets "$feature" --for=create --for=jsonpath='{.status.uses[0].count}'=3 --for=jsonpath='{.status.state}'=Off "--timeout=$patience"
done
show kubectl feature list -n widgets
show kubectl feature uses -n widgets WidgetColor

step "On: people may give Widgets a color"
show kubectl feature enable -n widgets WidgetColor --wait "--timeout=$patience"
show kubectl apply -f "$config/samples/widgets.yaml"
show kubectl wait configmap lamp -n widgets --for=create --for=jsonpath='{.data.color}'=red --for=jsonpath='{.data.text}'=welcome "--timeout=$patience"
show kubectl get widgets -n widgets

step "A live flip: the text is in capitals, and no process restarts"
show kubectl feature enable -n widgets WidgetUppercase
show kubectl wait configmap lamp -n widgets --for=jsonpath='{.data.text}'=WELCOME "--timeout=$patience"
for name in "${!pids[@]}"; do
	kill -0 "${pids[$name]}" 2>/dev/null || fail "$name has ended"
done
show kubectl feature wait -n widgets WidgetUppercase --for=state=On "--timeout=$patience"

step "The replica that reconciles crashes, and another takes over"
first=$(leader)
echo "$first reconciles"
show kill -9 "${pids[$first]}"
wait "${pids[$first]}" 2>/dev/null || true
unset "pids[$first]"
show kubectl apply -f "$config/samples/late.yaml"
show kubectl wait configmap bell -n widgets --for=create --for=jsonpath='{.data.text}'=RING "--timeout=$patience"
second=$(leader)
echo "$second reconciles"
[[ $second != "$first" ]] || fail "$first was killed"
echo "The one that crashed comes back under its name, as a container in its pod does:"
start "$first"
show timeout --foreground "$patience" "${ask[@]}" --retry 1000000 --retry-delay 1 --retry-all-errors -o "$work/plan.json" "http://127.0.0.1:${metrics[$first]}/features/plan?feature=WidgetColor&enabled=false"

step "What would turning it off do?"
show cat "$work/plan.json"
plan=$(tr -d '[:space:]' <"$work/plan.json")
has "$plan" '"field":"spec.color"'
has "$plan" '"count":1'
has "$plan" '"widgets/lamp"'

step "Off: the field goes from all Widgets, and nothing else"
stored >"$work/before.txt"
show kubectl feature disable -n widgets WidgetColor --wait "--timeout=$patience"
stored >"$work/after.txt"
announce diff "$work/before.txt" "$work/after.txt"
diff "$work/before.txt" "$work/after.txt" || true
grep -v '^lamp\.spec\.color: red$' "$work/before.txt" | diff - "$work/after.txt" >/dev/null || fail "lamp.spec.color should be gone, and nothing else"
! diff "$work/before.txt" "$work/after.txt" >/dev/null || fail "lamp.spec.color is still there"
# Once the Widget was seen without the color, its ConfigMap is right.
show kubectl wait widget lamp -n widgets --for=jsonpath='{.status.conditions[?(@.type=="Ready")].observedGeneration}'=2 "--timeout=$patience"
expect '{"size":"3","text":"WELCOME"}' kubectl get configmap lamp -n widgets -o jsonpath='{.data}'
expect 'Off On' kubectl get features -n widgets -o jsonpath='{.items[*].status.state}'
show kubectl feature list -n widgets

step "An old manifest brings the color back while the feature is off, and a replica cleans"
show kubectl apply -f "$config/samples/widgets.yaml"
expect 'red' kubectl get widget lamp -n widgets -o jsonpath='{.spec.color}'
# kube-apiserver does it for the features of Kubernetes alone, and says who does.
announce kubectl feature clean -n widgets WidgetColor
! refused=$(kubectl feature clean -n widgets WidgetColor 2>&1) || fail "kube-apiserver cleaned a feature of the operator"
echo "$refused"
has "$refused" 'ask the operator that looks after it'
show "${ask[@]}" -X POST "http://127.0.0.1:${metrics[$second]}/features/clean?feature=WidgetColor"
show kubectl feature wait -n widgets WidgetColor --for=state=Off "--timeout=$patience"
show kubectl wait feature -n widgets WidgetColor --for=condition=Clean "--timeout=$patience"
stored >"$work/cleaned.txt"
announce diff "$work/after.txt" "$work/cleaned.txt"
diff "$work/after.txt" "$work/cleaned.txt" || fail "the Widgets are not what they were before the manifest was applied"

show kubectl feature disable -n widgets WidgetUppercase --wait "--timeout=$patience"
show kubectl wait configmap lamp -n widgets --for=jsonpath='{.data.text}'=welcome "--timeout=$patience"
expect 'Off Off' kubectl get features -n widgets -o jsonpath='{.items[*].status.state}'

step "Replicas that end in order take their reports with them"
announce kill "${pids[@]}"
kill "${pids[@]}"
for name in replica-a replica-b replica-c; do
	pid=${pids[$name]}
	ended "$patience" "$pid" || fail "$name does not end"
	wait "$pid" || fail "$name did not end in order: exit code $?"
	unset "pids[$name]"
done
expect '' kubectl get featurereports -n widgets -o name

step "Uninstalled: what belongs to the service account goes with it"
show kubectl delete serviceaccount -n widgets widget-operator
show kubectl wait feature -n widgets WidgetColor WidgetUppercase --for=delete "--timeout=$patience"
expect '' kubectl get features -n widgets -o name
# Widgets go before what defines them, so that the garbage collector still knows them as
# the owners of ConfigMaps; the namespace, which all of it is in, goes last.
show kubectl delete widgets -n widgets --all "--timeout=$patience"
show kubectl wait configmap -n widgets bell door lamp --for=delete "--timeout=$patience"
everywhere=$(clusterwide)
printf 'In no namespace there are still:\n%s\n' "$everywhere"
for kind in customresourcedefinition clusterrole. clusterrolebinding; do has "$everywhere" "$kind"; done
show kubectl delete -f "$config/rbac.yaml" -f "$config/crd.yaml" "--timeout=$patience"
show kubectl delete namespace widgets "--timeout=$patience"
everywhere=$(clusterwide)
[[ -z $everywhere ]] || fail "in no namespace there are left: $everywhere"

step "The end of the cluster"
show "${cluster[@]}" down
echo
echo "Example done: a field was used and cleared, a behavior changed while three replicas ran, one crashed and another took over, nothing was left; $((SECONDS - begun)) s"
