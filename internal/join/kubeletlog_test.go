package join_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// kubelet's log does not fill the disk, unless the node file says otherwise.
func TestTheLogOfKubeletIsRotated(t *testing.T) {
	for what, c := range map[string]struct {
		set  func(*lab)
		want string
	}{
		"by default": {func(*lab) {}, " --log-file-size=50Mi --log-file-age=168h0m0s "},
		"as the node file says": {func(l *lab) {
			l.spec().Kubelet.LogFileSize, l.spec().Kubelet.LogFileAge = "1Gi", &v1alpha1.Duration{}
		}, " --log-file-size=1Gi "},
		"not": {func(l *lab) { l.spec().Kubelet.LogFileSize = "0" }, ""},
		"not by an older one": {func(l *lab) {
			l.spec().Version = "1.33.5"
			l.control.SetVersion("v1.33.5")
		}, ""},
	} {
		subtest(t, what, func(t *testing.T) {
			l := newLab(t)
			c.set(l)
			l.mustJoin()
			config, err := l.Machine.Process("look").Services.Config(t.Context(), "kubelet")
			switch line := config.CommandLine; {
			case err != nil:
				t.Fatal(err)
			case c.want == "" && strings.Contains(line, "--log-file-"), !strings.Contains(line, c.want):
				t.Errorf("kubelet's service runs %s", line)
			}
		})
	}
}
