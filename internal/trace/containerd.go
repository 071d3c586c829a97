package trace

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/containerdconfig"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

const (
	containerdExe = "containerd.exe"
	// containerdLog is where containerd logs to that would log nowhere: as a
	// service it has no other place than its --log-file.
	containerdLog = `C:\var\log\containerd\containerd.log`
	// newConfig is the least that every containerd since 1.3 reads.
	newConfig = "version = 2\n"
)

const configHeader = `# Written by "swdt trace on", for a while. The configuration as it was, byte for
# byte, is kept, and comes back with "swdt trace off": change nothing here.

`

// containerdConfig is where a containerd with this command line reads its
// configuration.
func containerdConfig(commandLine string) (string, error) {
	path := orElse(commandline.Flag(commandLine, "config"), commandline.Flag(commandLine, "c"))
	path = strings.ReplaceAll(orElse(path, v1alpha1.ContainerdFolder+`\config.toml`), "/", `\`)
	switch {
	case len(path) > 2 && path[1] == ':' && path[2] == '\\', strings.HasPrefix(path, `\\`):
		return path, nil
	case strings.HasPrefix(path, `\`):
		return `C:` + path, nil
	}
	return "", fmt.Errorf("the service %s names its configuration %s, which depends on the folder it is started in: register it with a whole path", Containerd, path)
}

// containerdTalks sets the level in the configuration, and on the command line
// where that has one, which wins.
func containerdTalks(base standing, wish record.Wish, version string) (standing, error) {
	over := map[string]any{"debug": map[string]any{"level": wish.Level}}
	if wish.OTLP != "" {
		plugins, err := otlpPlugins(wish.OTLP, version)
		if err != nil {
			return standing{}, err
		}
		over["plugins"] = plugins
	}
	config := base.Config
	if !base.Exists {
		config = []byte(newConfig)
	}
	config, err := containerdconfig.Overlay(config, over, configHeader)
	if err != nil {
		return standing{}, err
	}
	talks := standing{CommandLine: base.CommandLine, Config: config, Exists: true}
	if len(containerdconfig.Differences(base.Config, config)) == 0 {
		talks.Config, talks.Exists = base.Config, base.Exists // it says so already
	}
	if commandline.Has(base.CommandLine, containerdExe, "log-level", "l") {
		talks.CommandLine, _ = commandline.Set(talks.CommandLine, containerdExe, wish.Level, "log-level", "l")
	}
	if !commandline.Has(base.CommandLine, containerdExe, "log-file") {
		talks.CommandLine, _ = commandline.Set(talks.CommandLine, containerdExe, containerdLog, "log-file")
	}
	return talks, nil
}

// otlpPlugins are the tables that have a containerd 1.6 or 1.7 send spans.
func otlpPlugins(endpoint, version string) (map[string]any, error) {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if number, err := strconv.Atoi(major); err != nil || number > 1 {
		return nil, fmt.Errorf("containerd %s takes no endpoint for its spans from its configuration, but from its environment: leave --otlp out, and set OTEL_EXPORTER_OTLP_ENDPOINT in the service's Environment", orElse(version, "of an unknown version"))
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

func containerdLevel(s standing) string {
	level := orElse(commandline.Flag(s.CommandLine, "log-level"), commandline.Flag(s.CommandLine, "l"))
	return orElse(orElse(level, containerdconfig.Text(s.Config, "debug", "level")), "info")
}
