package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// containerdFile is containerd's default configuration file.
	containerdFile = `C:\Program Files\containerd\config.toml`
	// containerd uses these values if its configuration does not set others.
	defaultBinFolder  = `C:\Program Files\containerd\cni\bin`
	defaultConfFolder = `C:\Program Files\containerd\cni\conf`
	defaultRoot       = `C:\ProgramData\containerd\root`
)

// containerd gathers containerd's configuration file and effective configuration, then the pod
// network's configuration, whose folder containerd's configuration sets.
func (g *gatherer) containerd(ctx context.Context) error {
	config, err := g.containerdConfig(ctx)
	g.facts.Containerd = factOf(config, err)
	if err != nil {
		g.facts.CNI = Fact[CNI]{Unknown: err.Error()}
		return err
	}
	cni, err := g.cni(ctx, config)
	g.facts.CNI = factOf(cni, err)
	return err
}

func (g *gatherer) containerdConfig(ctx context.Context) (ContainerdConfig, error) {
	service := g.facts.service("containerd")
	if service.Name == "" {
		return ContainerdConfig{}, errors.New("there is no service containerd")
	}
	if service.Line() == "" {
		return ContainerdConfig{}, fmt.Errorf("containerd's own command line is unknown: %s", service.Unknown)
	}
	config := ContainerdConfig{
		Path: containerdPath(service.Line()),
	}
	text, err := g.file(ctx, config.Path)
	if err != nil {
		return config, err
	}
	config.Exists = text != nil
	if config.FileVersion, err = containerdconfig.Version(text); err != nil {
		config.Refused = fmt.Sprintf("%s is not TOML: %v", config.Path, err)
		if _, encoded := errors.AsType[*windowstext.Error](err); encoded {
			return config, nil
		}
		for _, m := range containerdconfig.Check(text) {
			config.Refused = fmt.Sprintf("%s, line %d, column %d: %s; %s", config.Path, m.Line, m.Column, m.What, m.Remedy)
		}
		return config, nil
	}
	program := programOf(service, "containerd.exe")
	dumped, err := g.dump(ctx, program, config)
	var refused *command.FailedError
	if errors.As(err, &refused) {
		config.Refused = g.whyRefused(ctx, program, text, refused)
		return config, nil
	}
	if err != nil {
		return config, err
	}
	return config, config.read(dumped)
}

// containerdPath returns the path of the configuration file of a containerd with this command line.
func containerdPath(line string) string {
	return onDrive(cmp.Or(commandline.Flag(line, "config"), commandline.Flag(line, "c"), containerdFile))
}

// dump returns containerd's effective configuration. If the configuration file does not exist, dump
// returns containerd's default configuration.
func (g *gatherer) dump(ctx context.Context, program string, config ContainerdConfig) (string, error) {
	if program == "" {
		return "", errors.New("the service containerd runs no containerd.exe")
	}
	if !config.Exists { // config dump would fail without the file
		return g.output(ctx, program, "config", "default")
	}
	return g.output(ctx, program, "--config", config.Path, "config", "dump")
}

// whyRefused returns the reason why containerd refuses its configuration.
func (g *gatherer) whyRefused(ctx context.Context, program string, config []byte, refused error) string {
	defaults, err := g.output(ctx, program, "config", "default")
	if err != nil {
		return refused.Error()
	}
	return containerdconfig.Explain(config, containerdconfig.MajorOf([]byte(defaults)), refused).Error()
}

// table is a TOML table; its structure depends on containerd's version.
type table map[string]any

func (t table) at(names ...string) table {
	for _, name := range names {
		next, _ := t[name].(map[string]any)
		t = next
	}
	return t
}

func (t table) text(name string) string {
	text, _ := t[name].(string)
	return text
}

func (t table) list(name string) (all []string) {
	values, _ := t[name].([]any)
	for _, value := range values {
		if text, ok := value.(string); ok && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// read sets the fields from the output of containerd config dump. It reads the tables of all
// versions of the configuration, since each version has the settings in other tables. See
// internal/format/containerdconfig for these tables.
func (c *ContainerdConfig) read(dumped string) error {
	all := table{}
	if err := toml.Unmarshal([]byte(dumped), &all); err != nil {
		return fmt.Errorf("parse the output of containerd config dump: %w", err)
	}
	c.Conflict = containerdconfig.Refused(all)
	version, _ := all["version"].(int64)
	c.Version = int(version)
	before2, runtime := all.at("plugins", "io.containerd.grpc.v1.cri"),
		all.at("plugins", "io.containerd.cri.v1.runtime")
	images, server := all.at("plugins", "io.containerd.cri.v1.images"),
		all.at("plugins", "io.containerd.server.v1.grpc")
	c.Root = onDrive(cmp.Or(all.text("root"), defaultRoot))
	c.Pipe = cmp.Or(server.text("address"), all.at("grpc").text("address"))
	c.SandboxImage = cmp.Or(images.at("pinned_images").text("sandbox"), before2.text("sandbox_image"))
	c.Snapshotter = cmp.Or(images.text("snapshotter"), before2.at("containerd").text("snapshotter"))
	for _, cni := range []table{runtime.at("cni"), before2.at("cni")} {
		c.BinFolders = append(c.BinFolders, cni.list("bin_dirs")...)
		if folder := cni.text("bin_dir"); folder != "" {
			c.BinFolders = append(c.BinFolders, folder)
		}
		c.ConfFolder = cmp.Or(c.ConfFolder, cni.text("conf_dir"))
	}
	if len(c.BinFolders) == 0 {
		c.BinFolders = []string{defaultBinFolder}
	}
	for i, folder := range c.BinFolders {
		c.BinFolders[i] = onDrive(folder)
	}
	c.ConfFolder = onDrive(cmp.Or(c.ConfFolder, defaultConfFolder))
	for _, plugin := range []table{runtime, before2} {
		c.Handlers = append(c.Handlers, slices.Sorted(maps.Keys(plugin.at("containerd", "runtimes")))...)
	}
	return nil
}

// cni reads the configuration files of the pod network, and lists the files in the folders of
// CNI binaries.
func (g *gatherer) cni(ctx context.Context, config ContainerdConfig) (CNI, error) {
	cni := CNI{
		Folder: cmp.Or(config.ConfFolder, defaultConfFolder), Folders: config.BinFolders, Files: []CNIFile{},
		Binaries: []string{},
	}
	if len(cni.Folders) == 0 {
		cni.Folders = []string{defaultBinFolder}
	}
	paths, err := g.listed(ctx, cni.Folder)
	if err != nil {
		return cni, err
	}
	for _, file := range paths {
		if !isCNIFile(file) {
			continue
		}
		content, err := g.file(ctx, file)
		if err != nil {
			return cni, err
		}
		cni.Files = append(cni.Files, cniFile(file, content))
	}
	if len(cni.Files) == 0 {
		if cni.Elsewhere, err = g.elsewhere(ctx, cni.Folder); err != nil {
			return cni, err
		}
	}
	for _, folder := range cni.Folders {
		programs, err := g.listed(ctx, folder)
		if err != nil {
			return cni, err
		}
		for _, program := range programs {
			cni.Binaries = append(cni.Binaries, folded(program[strings.LastIndex(program, `\`)+1:]))
		}
	}
	return cni, nil
}

// elsewhere returns the configuration files of pod networks in other folders than the one that the
// runtime reads.
func (g *gatherer) elsewhere(ctx context.Context, folder string) (found []string, err error) {
	for _, other := range otherConfFolders() {
		if strings.EqualFold(other, folder) {
			continue
		}
		files, err := g.listed(ctx, other)
		if err != nil {
			return found, err
		}
		for _, file := range files {
			if isCNIFile(file) {
				found = append(found, file)
			}
		}
	}
	return found, nil
}

// listed returns the files of a folder sorted by name, or none if the folder does not
// exist.
func (g *gatherer) listed(ctx context.Context, folder string) (paths []string, err error) {
	reply, err := g.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range reply.GetEntries() {
		if !entry.GetFolder() {
			paths = append(paths, entry.GetPath())
		}
	}
	slices.Sort(paths)
	return paths, err
}
