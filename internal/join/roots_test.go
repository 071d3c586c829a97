package join_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform/platformtest"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func inPEM(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// trusts returns the machine's root certificates.
func (l *lab) trusts() [][]byte {
	l.t.Helper()
	all, err := l.Machine.Process("look").Roots.List()
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

func (l *lab) hasRoots(certificates ...[]byte) {
	l.t.Helper()
	if is := l.trusts(); !slices.EqualFunc(sorted(is), sorted(certificates), bytes.Equal) {
		l.t.Errorf("the machine trusts %d certificates, want other %d", len(is), len(certificates))
	}
}

func sorted(all [][]byte) [][]byte { return slices.SortedFunc(slices.Values(all), bytes.Compare) }

func TestRootCertificatesAreSetChangedAndRemoved(t *testing.T) {
	mine, one, two, three := platformtest.Authority(t, "mine"), platformtest.Authority(t, "one"),
		platformtest.Authority(t, "two"), platformtest.Authority(t, "three")
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	if err := os.WriteFile(bundle, []byte("# the company\r\n"+inPEM(two)+inPEM(three)+inPEM(mine)), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		if err := l.Machine.Process("look").Roots.Add(mine); err != nil {
			t.Fatal(err)
		}
		before := l.state()
		for i, c := range []struct {
			authorities []string
			changed     []string
			trusts      [][]byte
			restarts    int
		}{
			{[]string{inPEM(one)}, nil, [][]byte{mine, one}, 1},
			{[]string{inPEM(one), bundle}, []string{"root certificates", "containerd service", "kubelet"}, [][]byte{mine, one, two, three}, 1},
			{[]string{bundle}, []string{"root certificates", "containerd service", "kubelet"}, [][]byte{mine, two, three}, 1},
			{[]string{bundle}, nil, [][]byte{mine, two, three}, 0},
			{nil, []string{"root certificates", "containerd service", "kubelet"}, [][]byte{mine}, 1},
			{[]string{bundle}, []string{"root certificates", "containerd service", "kubelet"}, [][]byte{mine, two, three}, 1},
		} {
			l.spec().CertificateAuthorities = c.authorities
			operations := len(l.Machine.Operations())
			results := l.mustJoin()
			l.hasRoots(c.trusts...)
			if starts := l.starts(operations); starts["containerd"] != c.restarts {
				t.Errorf("%d authorities: containerd started %d times, want %d", len(c.authorities), starts["containerd"], c.restarts)
			}
			if i > 0 && !slices.Equal(changed(results), c.changed) {
				t.Errorf("%d authorities: changed %q, want %q", len(c.authorities), changed(results), c.changed)
			}
		}
		if results, err := l.resetWith(join.ResetOptions{}); err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		l.hasRoots(mine) // it was trusted before the join
		l.isAsBefore(before)
	})
}

// A join that was interrupted anywhere between its record and the restart of containerd is completed by the next one.
func TestInterruptedRootCertificates(t *testing.T) {
	one := platformtest.Authority(t, "one")
	for _, kind := range []simulated.Kind{simulated.OpRegistrySet, simulated.OpServiceStop} {
		subtest(t, string(kind), func(t *testing.T) {
			l := newLab(t)
			l.mustJoin()
			l.spec().CertificateAuthorities = []string{inPEM(one)}
			failed := false
			l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
				if op.Kind == kind && op.Phase == simulated.Before && !failed {
					failed = true
					return simulated.Fail(fault.ErrPermission)
				}
				return simulated.Continue()
			})
			if results, err := l.join(); err == nil {
				t.Fatalf("no error\n%s", table(results))
			}
			operations := len(l.Machine.Operations())
			l.mustJoin()
			l.hasRoots(one)
			if starts := l.starts(operations); starts["containerd"] != 1 {
				t.Errorf("started %v", starts)
			}
			if _, err := l.resetWith(join.ResetOptions{}); err != nil {
				t.Fatal(err)
			}
			l.hasRoots()
		})
	}
}

func TestRootCertificatesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		for entry, want := range map[string]string{
			"no/such.pem": "spec.kubernetes.certificateAuthorities",
			"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----": "spec.kubernetes.certificateAuthorities[0]",
			"-----BEGIN X-----\nAAAA\n-----END X-----":                     "leave only certificates",
		} {
			l.spec().CertificateAuthorities = []string{entry}
			if _, err := l.join(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q: %v", entry, err)
			}
			l.hasRoots()
		}
	})
}
