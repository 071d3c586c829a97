package hostprocess_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
)

// agnhost is the image of Kubernetes' tests: its program has no extension (test/images/agnhost/Dockerfile_windows).
func agnhost() hostprocess.Image {
	return hostprocess.Image{Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}, Files: []string{"agnhost"}}
}

// The rows are reports and sources of others: what the published runtime does with a container.
func TestStart(t *testing.T) {
	for name, test := range map[string]struct {
		image  hostprocess.Image
		c      corev1.Container
		binds  bool
		want   string // the program; "" if none starts
		reason string
	}{
		// kubernetes/kubernetes#112651, and pull request 120113, which copies agnhost to agnhost.exe
		"agnhost, 2022": {agnhost(), corev1.Container{}, true, "", "not recognized"},
		"agnhost, 2019": {agnhost(), corev1.Container{}, false, "", "cannot find"},
		"agnhost.exe below the root, 2022": {hostprocess.Image{Files: []string{"agnhost.exe"}},
			corev1.Container{Command: []string{"%CONTAINER_SANDBOX_MOUNT_POINT%\\agnhost.exe"}}, true, `C:\hpc\agnhost.exe`, ""},
		"a file without extension below the root, 2022": {hostprocess.Image{Files: []string{"agnhost"}},
			corev1.Container{Command: []string{"%CONTAINER_SANDBOX_MOUNT_POINT%\\agnhost"}}, true, "", "not recognized"},
		"a file without extension below the root, 2019": {hostprocess.Image{Files: []string{"agnhost"}},
			corev1.Container{Command: []string{"%CONTAINER_SANDBOX_MOUNT_POINT%\\agnhost"}}, false, `C:\hpc\0f3a\agnhost`, ""},
		// sig-windows-tools, hostprocess/calico/kube-proxy: the image, and its own manifest
		"kube-proxy's image alone": {hostprocess.Image{Entrypoint: []string{"PowerShell"}}, corev1.Container{}, true, "",
			"empty input"},
		"kube-proxy's image with its manifest": {hostprocess.Image{Entrypoint: []string{"PowerShell"}},
			corev1.Container{Args: []string{"$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"}}, true,
			`C:\Windows\System32\WindowsPowerShell\v1.0\PowerShell.exe`, ""},
		"forward slashes, 2022": {hostprocess.Image{}, corev1.Container{Command: []string{"C:/Windows/System32/curl.exe"}}, true,
			"", "not recognized"},
		"two quoted words, 2022": {hostprocess.Image{Files: []string{"a b.exe"}},
			corev1.Container{Command: []string{`C:\hpc\a b.exe`, "c d"}}, true, "", "not recognized"},
		"a long line, 2022": {hostprocess.Image{},
			corev1.Container{Command: []string{"curl.exe", strings.Repeat("x", 8176)}}, true, "", "too long"},
		"the longest line, 2022": {hostprocess.Image{},
			corev1.Container{Command: []string{"curl.exe", strings.Repeat("x", 8175)}}, true,
			`C:\Windows\System32\curl.exe`, ""},
		"a long line, 2019": {hostprocess.Image{},
			corev1.Container{Command: []string{"curl.exe", strings.Repeat("x", 8176)}}, false,
			`C:\Windows\System32\curl.exe`, ""},
	} {
		p, err := hostprocess.Windows{Binds: test.binds}.Start(test.image, test.c, nil)
		var not *hostprocess.NotStartedError
		switch {
		case test.want == "" && (!errors.As(err, &not) || !strings.Contains(not.Why, test.reason)):
			t.Errorf("%s: %+v, %v; want %q", name, p, err, test.reason)
		case test.want != "" && (err != nil || p.Program != test.want):
			t.Errorf("%s: starts %s, %v; want %s", name, p.Program, err, test.want)
		}
	}
}

// A volume is at its path only with the bind filter, and below the root always.
func TestVolumes(t *testing.T) {
	c := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: `C:\swdt`}}}
	volumes := map[string][]string{"v": {"probe.exe"}}
	for name, w := range hostprocess.All() {
		for _, command := range []string{`C:\swdt\probe.exe`, `%CONTAINER_SANDBOX_MOUNT_POINT%\swdt\probe.exe`} {
			_, err := w.Exec(hostprocess.Image{}, c, volumes, command)
			if want := w.Binds || strings.HasPrefix(command, "%"); (err == nil) != want {
				t.Errorf("%s: %s: %v", name, command, err)
			}
		}
	}
}
