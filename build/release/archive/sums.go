/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package archive

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// The files that WriteSums writes.
const (
	SHA256Sums = "SHA256SUMS"
	SHA512Sums = "SHA512SUMS"
)

// WriteSums writes SHA256SUMS and SHA512SUMS beside the files in dir, one line
// for each file, sorted by name, in the form that "sha256sum -c" reads. SHA256SUMS
// comes last: where it is, all is.
func WriteSums(dir string) error {
	for _, sums := range []struct {
		name      string
		algorithm func() hash.Hash
	}{{SHA512Sums, sha512.New}, {SHA256Sums, sha256.New}} {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		var lines bytes.Buffer
		for _, f := range files {
			if !f.Type().IsRegular() || f.Name() == SHA256Sums || f.Name() == SHA512Sums {
				continue
			}
			sum, err := Sum(filepath.Join(dir, f.Name()), sums.algorithm())
			if err != nil {
				return err
			}
			fmt.Fprintf(&lines, "%s  %s\n", sum, f.Name())
		}
		if err := WriteData(filepath.Join(dir, sums.name), lines.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Sum returns the hash of a file in hexadecimal digits.
func Sum(file string, h hash.Hash) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", file, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
