package upgradecheck_test

import (
	"testing"
	"testing/fstest"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A container's own hostProcess counts before that of its pod: WindowsSecurityContextOptions of the API of Kubernetes,
// https://github.com/kubernetes/api/blob/v0.34.1/core/v1/types.go.
func TestHostProcessOfContainers(t *testing.T) {
	const own = "securityContext: {windowsOptions: {hostProcess: true}}"
	const not = "securityContext: {windowsOptions: {hostProcess: false}}"
	for name, c := range map[string]struct {
		pod, first, second string
		want               bool
	}{
		"no one":                    {want: false},
		"the pod":                   {pod: own, want: true},
		"each container":            {first: own, second: own, want: true},
		"one container":             {first: own, want: false},
		"a container against it":    {pod: own, second: not, want: false},
		"the containers against it": {pod: not, first: own, second: own, want: true},
		"another field of one":      {pod: own, first: "securityContext: {windowsOptions: {runAsUserName: x}}", want: true},
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  os: {name: windows}\n  " + c.pod +
			"\n  initContainers:\n  - name: a\n    image: a:1\n    " + c.first + "\n  containers:\n  - name: b\n    image: b:1\n    " + c.second + "\n"
		r := upgradecheck.NewReader(load(t))
		if err := r.Folder(fstest.MapFS{"web.yaml": &fstest.MapFile{Data: []byte(text)}}, ""); err != nil {
			t.Fatal(err)
		}
		if len(r.Pods) != 1 || len(r.Pods[0].Images) != 2 || r.Pods[0].HostProcess != c.want {
			t.Errorf("%s: %+v, want %v", name, r.Pods, c.want)
		}
	}
}
