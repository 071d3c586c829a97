package simulated_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// kube-log-runner 1.34 and newer rotates the log and removes old parts; an older one refuses the flags.
func TestKubeLogRunnerRotates(t *testing.T) {
	for version, rotates := range map[string]bool{"v1.33.9": false, "v1.34.0": true, "v1.36.3": true} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := simulated.New(simulated.Options{})
				t.Cleanup(m.Close)
				p := m.Process("p")
				m.Kill("kubelet")
				m.WriteFile(`C:\k\kube-log-runner.exe`,
					simulated.Binary(simulated.BinarySpec{Name: "kube-log-runner", Version: version}))
				command := `C:\k\kube-log-runner.exe --log-file=C:/logs/k.log --log-file-size=100 --log-file-age=1h ` +
					simulated.KubeletPath + ` --windows-service`
				config := platform.ServiceConfig{Name: "kubelet", CommandLine: command, Recovery: &platform.Recovery{}}
				if err := p.Services.Configure(t.Context(), config); err != nil {
					t.Fatal(err)
				}
				err := p.Services.Start(t.Context(), "kubelet")
				if !rotates {
					if !errors.Is(err, fault.ErrStartFailed) {
						t.Errorf("the start: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				awaitState(t, p, "kubelet", platform.Running)
				time.Sleep(time.Second)
				parts := 0
				for path := range m.Snapshot(`C:\logs`) {
					if strings.HasPrefix(strings.ToLower(path), `c:\logs\k-`) {
						parts++
					}
				}
				if parts == 0 {
					t.Errorf("no rotated part: %v", m.Snapshot(`C:\logs`))
				}
			})
		})
	}
}
