package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// cniExtensions returns the extensions of the files that containerd reads from the folder of the
// pod network's configuration. containerd compares them with their case.
func cniExtensions() []string { return []string{".conf", ".conflist", ".json"} }

func isCNIFile(file string) bool { return slices.Contains(cniExtensions(), path.Ext(file)) }

// otherConfFolders returns folders that installers of pod networks and distributions of Kubernetes
// use for the configuration. A runtime reads one folder alone.
func otherConfFolders() []string {
	return []string{`C:\etc\cni\net.d`, defaultConfFolder, `C:\k\cni\config`, `C:\k\cni`, `C:\opt\cni\conf`,
		`C:\CalicoWindows\cni`, `C:\k\azurecni\netconf`, `C:\ProgramData\Amazon\EKS\cni\conf`}
}

// cniPlugin are the fields of one plugin's configuration whose types libcni checks.
type cniPlugin struct {
	CNIVersion   string          `json:"cniVersion"`
	Name         string          `json:"name"`
	Type         string          `json:"type"`
	Capabilities map[string]bool `json:"capabilities"`
	IPAM         struct {
		Type string `json:"type"`
	} `json:"ipam"`
}

// cniFile reads a configuration file by the rules of libcni, of which containerd's go-cni takes
// ConfListFromBytes for a .conflist, and ConfFromBytes for any other file. cniFile returns only
// names, since the file may contain a token.
func cniFile(file string, content []byte) CNIFile {
	found := CNIFile{Path: file}
	var plugins []cniPlugin
	if path.Ext(file) == ".conflist" {
		found.Name, plugins, found.Problem = cniList(content)
	} else {
		found.Name, plugins, found.Problem = cniConf(content)
	}
	if found.Problem != "" { // libcni parses the file as JSON, which has no byte order mark
		found.Problem = windowstext.Explain(content, "the container runtime", errors.New(found.Problem)).Error()
	}
	for _, p := range plugins {
		for _, name := range []string{p.Type, p.IPAM.Type} {
			if name != "" && !slices.Contains(found.Plugins, name) {
				found.Plugins = append(found.Plugins, name)
			}
		}
	}
	if found.Problem == "" && !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`).MatchString(found.Name) {
		found.Problem = `its "name" is not a network's name: write letters, digits, _, . and -`
	}
	return found
}

// cniConf reads the configuration of one plugin.
func cniConf(content []byte) (name string, plugins []cniPlugin, problem string) {
	var conf struct {
		cniPlugin
		Plugins json.RawMessage `json:"plugins"`
	}
	switch err := json.Unmarshal(content, &conf); {
	case err != nil:
		return "", nil, err.Error()
	case conf.Type == "" && conf.Plugins != nil:
		return conf.Name, nil, `it has "plugins" and no "type", as a list of plugins does: rename it to .conflist`
	case conf.Type == "":
		return conf.Name, nil, `it has no "type", which names the plugin`
	case conf.Name == "":
		return "", []cniPlugin{conf.cniPlugin}, `it has no "name"`
	}
	return conf.Name, []cniPlugin{conf.cniPlugin}, ""
}

// cniList reads a list of plugins. A later libcni also reads plugins from a folder with the list's
// name; no installer for Windows is known to use that.
func cniList(content []byte) (name string, plugins []cniPlugin, problem string) {
	var list map[string]json.RawMessage
	if err := json.Unmarshal(content, &list); err != nil {
		return "", nil, err.Error()
	}
	if list["name"] == nil {
		return "", nil, `it has no "name"`
	}
	if json.Unmarshal(list["name"], &name) != nil {
		return "", nil, `its "name" is not a text`
	}
	if problem := cniListFields(list); problem != "" {
		return name, nil, problem
	}
	var items []json.RawMessage
	switch {
	case list["plugins"] == nil && list["type"] != nil:
		return name, nil, `it has "type" and no "plugins", as the configuration of one plugin does: rename it to .conf`
	case list["plugins"] == nil:
		return name, nil, `it has no "plugins"`
	case json.Unmarshal(list["plugins"], &items) != nil:
		return name, nil, `its "plugins" is not a list`
	case len(items) == 0:
		return name, nil, `its list "plugins" is empty`
	}
	for i, item := range items {
		var plugin cniPlugin
		if err := json.Unmarshal(item, &plugin); err != nil {
			return name, plugins, fmt.Sprintf("plugin %d of its list: %v", i+1, err)
		}
		if plugin.Type == "" {
			return name, plugins, fmt.Sprintf(`plugin %d of its list has no "type"`, i+1)
		}
		plugins = append(plugins, plugin)
	}
	return name, plugins, ""
}

// cniListFields checks the types of a list's other fields.
func cniListFields(list map[string]json.RawMessage) (problem string) {
	var version string
	if list["cniVersion"] != nil && json.Unmarshal(list["cniVersion"], &version) != nil {
		return `its "cniVersion" is not a text: put it in quotes`
	}
	for _, field := range []string{"disableCheck", "disableGC", "loadOnlyInlinedPlugins"} {
		value := list[field]
		if value != nil && !regexp.MustCompile(`^(true|false|"(?i:true|false)")$`).Match(value) {
			return fmt.Sprintf("its %q is not true or false", field)
		}
	}
	return ""
}
