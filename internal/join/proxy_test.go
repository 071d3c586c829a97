package join_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform"
)

// proxies returns the proxy variables of the running process of a service.
func (l *lab) proxies(service string) []string {
	return slices.DeleteFunc(l.Machine.ServiceEnvironment(service), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !strings.HasSuffix(name, "_PROXY")
	})
}

const around = "NO_PROXY=localhost,127.0.0.1,.svc,.cluster.local,10.96.0.0/12,192.168.0.0/16"

// A variable of the machine reaches no service that the SCM starts before the next boot. Each service has its own.
func TestServicesHaveTheProxyAtTheirNextStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		_, err := l.Settings.SetEnvironment(t.Context(), &agentv1.SetEnvironmentRequest{Variables: []*agentv1.EnvironmentVariable{
			{Name: "HTTPS_PROXY", Value: "http://machine.example:3128"}}})
		if err != nil {
			t.Fatal(err)
		}
		l.doc.Node.Spec.Setup.Environment = map[string]string{"HTTPS_PROXY": "http://machine.example:3128"}
		l.mustJoin()
		for _, name := range []string{"containerd", "kubelet"} {
			if got := l.proxies(name); !slices.Contains(got, "HTTPS_PROXY=http://machine.example:3128") {
				t.Errorf("%s runs with %q", name, got)
			}
		}
	})
}

// A proxy that is set, changed and removed reaches the running processes each time, and a second run finds nothing to do.
func TestTheProxyIsSetChangedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		for _, c := range []struct {
			proxy *v1alpha1.Proxy
			want  []string
		}{
			{&v1alpha1.Proxy{HTTPS: "http://proxy.example:3128"}, []string{"HTTPS_PROXY=http://proxy.example:3128", around}},
			{&v1alpha1.Proxy{HTTP: "http://other.example:80", HTTPS: "http://other.example:80", NoProxy: []string{".corp.example"}},
				[]string{"HTTPS_PROXY=http://other.example:80",
					strings.Replace(around, "=", "=.corp.example,", 1), "HTTP_PROXY=http://other.example:80"}},
			{nil, nil},
		} {
			l.spec().Proxy = c.proxy
			results := l.mustJoin()
			for _, name := range []string{"containerd", "kubelet"} {
				if diff := cmp.Diff(c.want, l.proxies(name), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s runs with:\n%s\n%s", name, diff, table(results))
				}
			}
			again, err := l.join()
			nothing(t, again, err)
			l.isReady()
		}
	})
}

// The plan names the variables and the restart, and no value, which may have a password.
func TestThePlanOfAProxyHasNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		l.spec().Proxy = &v1alpha1.Proxy{HTTPS: "http://me:s3cret@proxy.example:3128"}
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		results, err := l.run(t.Context(), steps, err, true)
		if err != nil {
			t.Fatal(err)
		}
		text := table(results)
		if strings.Contains(text, "s3cret") || !strings.Contains(text, "set HTTPS_PROXY, NO_PROXY of the service containerd, and restart it") ||
			!strings.Contains(text, "set HTTPS_PROXY, NO_PROXY of the service kubelet") {
			t.Error(text)
		}
		if !slices.Contains(changed(results), "kubelet") {
			t.Errorf("the plan has no restart of kubelet:\n%s", text)
		}
	})
}

// Variables of another program stay; a reset restores the values that were there before.
func TestOtherVariablesOfAServiceStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		machine := l.Machine.Process("before")
		const key = `HKLM\SYSTEM\CurrentControlSet\Services\kubelet`
		before := platform.RegistryValue{Name: "Environment", Type: platform.RegistryMultiString,
			Strings: []string{"KUBE=1", "https_proxy=http://old.example"}}
		if err := machine.Services.Create(t.Context(), platform.ServiceConfig{Name: "kubelet", CommandLine: `C:\mine\kubelet.exe`}); err != nil {
			t.Fatal(err)
		}
		if err := machine.Registry.Set(key, before); err != nil {
			t.Fatal(err)
		}
		l.spec().Proxy = &v1alpha1.Proxy{HTTPS: "http://new.example"}
		l.mustJoin()
		if got := l.Machine.ServiceEnvironment("kubelet"); !slices.Contains(got, "KUBE=1") || !slices.Contains(got, "https_proxy=http://new.example") {
			t.Errorf("kubelet runs with %q", got)
		}
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("reset: %v\n%s", err, table(results))
		}
		machine = l.Machine.Process("after")
		after, err := machine.Registry.Get(key, "Environment")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before.Strings, after.Strings); diff != "" {
			t.Errorf("the variables before the join and after the reset:\n%s", diff)
		}
		if _, err := machine.Registry.Get(strings.Replace(key, "kubelet", "containerd", 1), "Environment"); err == nil {
			t.Error("containerd's variables outlived its service")
		}
	})
}

// Without a kubeconfig, the ranges that an earlier run has found stay.
func TestWithoutTheClusterTheRangesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.spec().Proxy = &v1alpha1.Proxy{HTTPS: "http://proxy.example:3128"}
		l.mustJoin()
		before := l.proxies("kubelet")
		options := l.options()
		options.Cluster = nil
		hashes, err := l.cluster.CACertHashes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.spec().Join.ControlPlaneEndpoint = l.cluster.Endpoint()
		l.spec().Join.Token, l.spec().Join.DiscoveryTokenCACertHash = "abcdef.0123456789abcdef", hashes[0]
		steps, err := join.Steps(l.Node.Node, l.doc, options)
		results, err := l.run(t.Context(), steps, err, true)
		nothing(t, results, err)
		if diff := cmp.Diff(before, l.proxies("kubelet")); diff != "" {
			t.Error(diff)
		}
	})
}
