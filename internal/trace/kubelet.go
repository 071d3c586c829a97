package trace

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

const kubeletExe = "kubelet.exe"

// kubeletWithLevel returns the state with the wished --v. The flag --v takes precedence over the
// log level in kubelet's configuration.
func kubeletWithLevel(base logSettings, wish tracerecord.Wish, _ string) (logSettings, error) {
	line, ok := commandline.Set(base.CommandLine, kubeletExe, wish.Level, "v")
	if !ok {
		return logSettings{},
			fmt.Errorf("the service %s runs %q, in which %s does not occur: set --v in the script that "+
				"starts kubelet, or register kubelet as a native service", Kubelet, base.CommandLine, kubeletExe)
	}
	return logSettings{CommandLine: line}, nil
}

func kubeletLevel(s logSettings) string {
	return "--v=" + orElse(commandline.Flag(s.CommandLine, "v"), "0")
}
