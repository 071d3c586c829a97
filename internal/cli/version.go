package cli

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the agent's hash",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return a.runVersion() },
	}
}

type versionInfo struct {
	Version  string       `json:"version"`
	Commit   string       `json:"commit"`
	Modified bool         `json:"modified"` // built from a tree with uncommitted changes
	Go       string       `json:"go"`
	Platform string       `json:"platform"`
	Agent    versionAgent `json:"agent"`
}

type versionAgent struct {
	Hash      string `json:"hash"`
	SizeBytes int64  `json:"sizeBytes"`
}

func (a *app) runVersion() error {
	info := versionInfo{
		Version: a.env.Version, Commit: a.env.Commit,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info.complete()
	agent, err := a.env.Agent()
	if err != nil && !errors.Is(err, agentbin.ErrNotEmbedded) {
		return err
	}
	info.Agent = versionAgent{Hash: agent.Hash, SizeBytes: agent.Size}
	return a.print(info, info.writeText)
}

// complete fills in from Go's build information what the build did not set.
func (i *versionInfo) complete() {
	if build, ok := debug.ReadBuildInfo(); ok {
		if i.Version == "" && build.Main.Version != "(devel)" {
			i.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			switch {
			case setting.Key == "vcs.revision" && i.Commit == "":
				i.Commit = setting.Value
			case setting.Key == "vcs.modified":
				i.Modified = setting.Value == "true"
			}
		}
	}
	if i.Version == "" {
		i.Version = "devel"
	}
	if i.Commit == "" {
		i.Commit = "unknown"
	}
}

func (i versionInfo) writeText(w *ui.Page) error {
	agent := "none: built without `make build`"
	if i.Agent.Hash != "" {
		agent = fmt.Sprintf("%s, %s", i.Agent.Hash, ui.Size(i.Agent.SizeBytes))
	}
	changed := ""
	if i.Modified {
		changed = " with changes"
	}
	return ui.Lines(w, [][]string{
		{"swdt", i.Version},
		{"commit", i.Commit + changed},
		{"go", i.Go + " " + i.Platform},
		{"agent", agent},
	})
}
