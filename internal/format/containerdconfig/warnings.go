package containerdconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// warnings returns warnings about keys of the user TOML that belong to another version of the
// configuration, since this containerd most likely ignores these keys silently.
func warnings(config, user map[string]any, version int) []string {
	var found []string
	if stated, ok := user["version"]; ok && stated != int64(version) {
		found = append(found, fmt.Sprintf("%s has version = %v, but this containerd's configuration has version %d: "+
			"write it for that one", userField, stated, version))
	}
	for _, key := range slices.Sorted(maps.Keys(user)) {
		if _, known := config[key]; !known && slices.Contains([]string{"grpc", "ttrpc", "metrics"}, key) {
			found = append(found, unknown([]string{key}, version, "plugins.'"+serverPrefix+key+"'"))
		}
	}
	plugins, _ := user["plugins"].(map[string]any)
	generated, _ := config["plugins"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		found = append(found, pluginWarnings(generated, name, plugins[name], version)...)
	}
	return found
}

// pluginWarnings returns the warnings about one plugin's table. It covers only plugins that moved
// between versions: any other plugin may be missing in the generated configuration.
func pluginWarnings(generated map[string]any, name string, table any, version int) []string {
	known, there := generated[name].(map[string]any)
	switch {
	case !there && strings.HasPrefix(name, serverPrefix):
		return []string{unknown([]string{"plugins", name}, version, strings.TrimPrefix(name, serverPrefix))}
	case !there && (name == criImages || name == criRuntime):
		return []string{unknown([]string{"plugins", name}, version, "plugins.'"+criBefore2+"'")}
	case !there || name != criBefore2 && name != criImages && name != criRuntime:
		return nil
	}
	keys, _ := table.(map[string]any)
	var found []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if _, ok := known[key]; ok {
			continue
		}
		instead := "the output of containerd.exe config default"
		for _, other := range []string{criRuntime, criImages} {
			if moved, ok := generated[other].(map[string]any); ok && moved[key] != nil {
				instead = "plugins.'" + other + "'." + key
			}
		}
		if _, split := generated[criImages]; split && key == "sandbox_image" {
			instead = "plugins.'" + criImages + "'.pinned_images.sandbox"
		}
		found = append(found, unknown([]string{"plugins", name, key}, version, instead))
	}
	return found
}

func unknown(path []string, version int, instead string) string {
	return fmt.Sprintf("%s sets %s, which the configuration that this containerd generates (version %d) does not "+
		"have, so that it is likely ignored: see %s",
		userField, dotted(path), version, instead)
}
