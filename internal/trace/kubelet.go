package trace

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

const kubeletExe = "kubelet.exe"

// kubeletTalks returns the state with the wished --v, which takes precedence over kubelet's
// configuration.
func kubeletTalks(base standing, wish tracerecord.Wish, _ string) (standing, error) {
	line, ok := commandline.Set(base.CommandLine, kubeletExe, wish.Level, "v")
	if !ok {
		return standing{}, fmt.Errorf("the service %s runs %q, in which %s does not occur: set --v where that starts it, or register kubelet as a native service", Kubelet, base.CommandLine, kubeletExe)
	}
	return standing{CommandLine: line}, nil
}

func kubeletLevel(s standing) string {
	return "--v=" + orElse(commandline.Flag(s.CommandLine, "v"), "0")
}
