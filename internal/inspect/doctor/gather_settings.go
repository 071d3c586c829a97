package doctor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	maxSettings = 4096 // of one file
	maxDepth    = 32
)

// configuration gathers the configuration files of containerd, of the pod network and of kubelet, by their settings. The
// facts about them name the files.
func (g *gatherer) configuration(ctx context.Context) error {
	clean, err := newCleaner()
	if err != nil {
		return err
	}
	all := []ConfigFile{}
	for _, file := range g.configFiles() {
		if file.Path == "" {
			file.Problem = clean.text(file.Problem)
			all = append(all, file)
			continue
		}
		content, err := g.file(ctx, file.Path)
		if errors.Is(err, fault.ErrPermission) {
			file.Problem = clean.text(err.Error())
			all = append(all, file)
			continue
		}
		if err != nil {
			g.facts.Configuration = factOf(all, err)
			return err
		}
		if content == nil {
			continue
		}
		sum := sha256.Sum256(content)
		file.SHA256 = hex.EncodeToString(sum[:])
		file.Settings, err = clean.settings(file, content)
		if err != nil {
			file.Problem = clean.text(err.Error())
		}
		all = append(all, file)
	}
	g.facts.Configuration = Known(all)
	return nil
}

// configFiles returns the files without their content. If it is unknown which files a program has, it returns one without a
// path, with the reason.
func (g *gatherer) configFiles() (files []ConfigFile) {
	containerd, kubelet := g.facts.service("containerd"), g.facts.service("kubelet")
	switch {
	case containerd.Line() != "":
		files = append(files, ConfigFile{Path: containerdPath(containerd.Line()), Program: "containerd"})
	case containerd.Name != "" || g.facts.Services.Value == nil:
		files = append(files, ConfigFile{Program: "containerd", Problem: g.facts.Containerd.why()})
	}
	if cni := g.facts.CNI.Value; cni != nil {
		for _, file := range cni.Files[:min(len(cni.Files), maxFiles)] {
			files = append(files, ConfigFile{Path: file.Path, Program: "CNI"})
		}
	} else {
		files = append(files, ConfigFile{Program: "CNI", Problem: g.facts.CNI.why()})
	}
	if path := onDrive(g.facts.flag("config")); path != "" {
		files = append(files, ConfigFile{Path: path, Program: "kubelet"})
	} else if g.facts.KubeletFlags.Value == nil && (kubelet.Name != "" || g.facts.Services.Value == nil) {
		files = append(files, ConfigFile{Program: "kubelet", Problem: g.facts.KubeletFlags.why()})
	}
	return files
}

// settings returns the settings of a file, in TOML for containerd, else in YAML or JSON.
func (c *cleaner) settings(file ConfigFile, content []byte) (map[string]string, error) {
	text, err := windowstext.Decode(content)
	if err != nil {
		return nil, err
	}
	var document any
	if file.Program == "containerd" {
		err = toml.Unmarshal([]byte(text.Content), &document)
	} else {
		err = yaml.Unmarshal([]byte(text.Content), &document)
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	if !c.flatten(found, "", document, 0) {
		return found, fmt.Errorf("it has more than %d settings, or is nested deeper than %d levels: the others were not read",
			maxSettings, maxDepth)
	}
	return found, nil
}

// flatten adds the values of a document by their paths. It reports whether it has added all of them.
func (c *cleaner) flatten(found map[string]string, at string, value any, depth int) bool {
	if depth > maxDepth {
		return false
	}
	below := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	whole := true
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			whole = c.flatten(found, below(name), value[name], depth+1) && whole
		}
	case []any:
		for i, inside := range value {
			whole = c.flatten(found, fmt.Sprintf("%s[%d]", at, i), inside, depth+1) && whole
		}
	default:
		if len(found) >= maxSettings {
			return false
		}
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			text = cmp.Or(string(encoded), fmt.Sprint(err))
		}
		name := at[strings.LastIndexAny(at, ".]")+1:]
		found[c.text(at)] = c.named(name, text)
	}
	return whole
}
