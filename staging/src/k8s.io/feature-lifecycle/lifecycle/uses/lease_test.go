package uses

import (
	"testing"
	"time"
)

func TestLeaseTimeout(t *testing.T) {
	seconds := func(s int32) *int32 { return &s }
	for name, test := range map[string]struct {
		seconds *int32
		want    time.Duration
	}{
		"it does not say":             {nil, MaxLeaseTimeout},
		"nonsense":                    {seconds(0), MaxLeaseTimeout},
		"less than nothing":           {seconds(-5), MaxLeaseTimeout},
		"shorter":                     {seconds(15), 15 * time.Second},
		"kube-apiserver's identities": {seconds(3600), MaxLeaseTimeout},
	} {
		if got := LeaseTimeout(test.seconds); got != test.want {
			t.Errorf("%s: LeaseTimeout is %s, want %s", name, got, test.want)
		}
	}
}
