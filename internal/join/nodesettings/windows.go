package nodesettings

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// defaultCNIFolder is the folder of network configurations that containerd reads without a setting.
const defaultCNIFolder = `C:\Program Files\containerd\cni\conf`

// cniFolder returns the folder of network configurations of a configuration of containerd.
func cniFolder(config []byte) string {
	var file struct {
		Plugins map[string]struct {
			CNI struct {
				Folder string `toml:"conf_dir"`
			} `toml:"cni"`
		} `toml:"plugins"`
	}
	if err := toml.Unmarshal(config, &file); err == nil {
		for _, plugin := range []string{"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"} {
			if folder := file.Plugins[plugin].CNI.Folder; folder != "" {
				return commandline.OnDrive(folder)
			}
		}
	}
	return defaultCNIFolder
}

// network reads the network configuration that containerd uses: the first by name (ConfFiles in pkg/cni of go-cni, and
// libcni/api.go of containernetworking/cni v1.3.0).
func (l *looking) network(ctx context.Context, folder string) {
	if l.isFull() {
		l.unreadable(folder, "", &tooManyError{})
		return
	}
	l.asked++
	files, err := l.from.Folder(ctx, folder)
	if errors.Is(err, fault.ErrNotExist) {
		return
	}
	if err != nil {
		l.unreadable(folder, "", err)
		return
	}
	files = slices.DeleteFunc(files, func(path string) bool {
		lower := strings.ToLower(path)
		return !strings.HasSuffix(lower, ".conf") && !strings.HasSuffix(lower, ".conflist") && !strings.HasSuffix(lower, ".json")
	})
	if len(files) > 0 {
		l.file(ctx, "", CNI, slices.Min(files))
	}
}

// overrides reads the overrides of Windows' features by policy, and keeps those that an installer of nodes is known to
// set for some builds of Windows alone.
func (l *looking) overrides(ctx context.Context) {
	if l.isFull() {
		l.unreadable("", switches.Policy, &tooManyError{})
		return
	}
	l.asked++
	values, err := l.from.Values(ctx, switches.Policy)
	if errors.Is(err, fault.ErrNotExist) {
		return
	}
	if err != nil {
		l.unreadable("", switches.Policy, err)
		return
	}
	for _, v := range values {
		value := strconv.FormatUint(v.GetInteger(), 10)
		one := upgradecheck.Override{Place: upgradecheck.Place{Node: l.texts.Node.Name, Field: switches.Policy}, Name: v.GetName(), Value: value}
		for _, s := range switches.Known(switches.Policy, v.GetName(), 0) {
			if s.Value == value {
				one.Builds, one.Installer, one.Source = append(one.Builds, s.Windows), s.Installer, s.Source
			}
		}
		if len(one.Builds) > 0 && !slices.Contains(one.Builds, 0) {
			l.texts.Overrides = append(l.texts.Overrides, one)
		}
	}
}
