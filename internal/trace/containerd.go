package trace

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

const (
	containerdExe = "containerd.exe"
	// containerdLog is the log file that trace sets for a containerd without --log-file. Without a
	// log file, containerd's log is lost when containerd runs as a service.
	containerdLog = `C:\var\log\containerd\containerd.log`
	// newConfig is the smallest configuration that every containerd since 1.3 reads.
	newConfig = "version = 2\n"
)

const configHeader = `# "swdt trace on" wrote this file. "swdt trace off" restores the previous file, byte
# for byte: do not change this one.

`

// containerdConfig returns the path of the configuration that a containerd with this
// command line reads.
func containerdConfig(commandLine string) (string, error) {
	path := orElse(commandline.Flag(commandLine, "config"), commandline.Flag(commandLine, "c"))
	path = strings.ReplaceAll(orElse(path, v1alpha1.ContainerdFolder+`\config.toml`), "/", `\`)
	switch {
	case len(path) > 2 && path[1] == ':' && path[2] == '\\', strings.HasPrefix(path, `\\`):
		return path, nil
	case strings.HasPrefix(path, `\`):
		return `C:` + path, nil
	}
	return "", fmt.Errorf("the service %s names its configuration %s, a path that depends on the service's "+
		"folder: register the service with an absolute path", Containerd, path)
}

// containerdWithLevel returns the state with the wished level in the configuration and, if the
// command line has a level, in the command line too, since the command line takes precedence. The
// returned command line has a --log-file if the service runs containerd.exe.
func containerdWithLevel(base logSettings, wish tracerecord.Wish, version string) (logSettings, error) {
	if setsLevel(base.Program) && !setsLevel(base.CommandLine) {
		return logSettings{}, fmt.Errorf("the service %s runs %q, and a wrapper has --log-level in its own settings, which "+
			"comes before the configuration: remove it there", Containerd, base.Program)
	}
	over := map[string]any{"debug": map[string]any{"level": wish.Level}}
	if wish.OTLP != "" {
		plugins, err := otlpPlugins(wish.OTLP, version)
		if err != nil {
			return logSettings{}, err
		}
		over["plugins"] = plugins
	}
	config := base.Config
	if !base.Exists {
		config = []byte(newConfig)
	}
	if err := containerdconfig.Refuse(config, majorOf(version)); err != nil { // `off` would restore this file
		return logSettings{}, fmt.Errorf("read containerd's configuration: %w", err)
	}
	config, err := containerdconfig.Overlay(config, over, configHeader)
	if err != nil {
		return logSettings{}, err
	}
	wanted := logSettings{CommandLine: base.CommandLine, Config: config, Exists: true, Program: base.Program}
	if len(containerdconfig.Differences(base.Config, config)) == 0 {
		wanted.Config, wanted.Exists = base.Config, base.Exists // the configuration already has the wished settings
	}
	if setsLevel(base.CommandLine) {
		wanted.CommandLine, _ = commandline.Set(wanted.CommandLine, containerdExe, wish.Level, "log-level", "l")
	}
	if !commandline.Has(base.CommandLine, containerdExe, "log-file") {
		wanted.CommandLine, _ = commandline.Set(wanted.CommandLine, containerdExe, containerdLog, "log-file")
	}
	return wanted, nil
}

// setsLevel reports whether a command line has containerd's log level.
func setsLevel(commandLine string) bool {
	return commandline.Has(commandLine, containerdExe, "log-level", "l")
}

// otlpPlugins returns the configuration tables that make containerd 1.6 or 1.7 send spans
// to the endpoint.
func otlpPlugins(endpoint, version string) (map[string]any, error) {
	if majorOf(version) != 1 {
		return nil, fmt.Errorf("containerd %s takes no endpoint for its spans from its configuration, but from its "+
			"environment: leave --otlp out, and set OTEL_EXPORTER_OTLP_ENDPOINT in the service's Environment",
			orElse(version, "of an unknown version"))
	}
	address, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("read the address for spans: %w", err)
	}
	return map[string]any{
		"io.containerd.tracing.processor.v1.otlp": map[string]any{
			"endpoint": endpoint, "protocol": "http/protobuf", "insecure": address.Scheme == "http",
		},
		"io.containerd.internal.v1.tracing": map[string]any{"sampling_ratio": 1.0, "service_name": Containerd},
	}, nil
}

// majorOf returns the major version of containerd, or 0 if the version is unknown.
func majorOf(version string) int {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	number, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return number
}

func containerdLevel(s logSettings) string {
	level := orElse(commandline.Flag(s.CommandLine, "log-level"), commandline.Flag(s.CommandLine, "l"))
	return orElse(orElse(level, containerdconfig.Text(s.Config, "debug", "level")), "info")
}
