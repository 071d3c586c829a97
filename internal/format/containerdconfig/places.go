package containerdconfig

import "fmt"

// Names of the plugins that have the keys that swdt sets. They depend on containerd's version.
const (
	criBefore2   = "io.containerd.grpc.v1.cri" // since containerd 2.0, this plugin has only the streaming server's keys
	criImages    = "io.containerd.cri.v1.images"
	criRuntime   = "io.containerd.cri.v1.runtime"
	serverPrefix = "io.containerd.server.v1."
	serverGRPC   = serverPrefix + "grpc"
	serverTTRPC  = serverPrefix + "ttrpc"
)

// wish is a value to set and its possible keys.
type wish struct {
	field  string // in the node file
	value  any
	places []place
	// optional means that the wish is dropped if none of its keys exists.
	optional bool
}

// place is a possible place of a value: the path of a key in the generated configuration.
type place struct {
	path []string
	// list means that the value becomes the only element of a list.
	list bool
	// clear is another key of the same table. The method set empties that key, since the new value
	// replaces that key's value too.
	clear string
}

func at(path ...string) place { return place{path: path} }

func plugin(path ...string) place { return at(append([]string{"plugins"}, path...)...) }

// places returns the wishes that have a value, each with its possible keys, the preferred key
// first.
func places(w Wishes) []wish {
	binDirs := plugin(criRuntime, "cni", "bin_dirs")
	binDirs.list, binDirs.clear = true, "bin_dir"
	all := []wish{
		{field: "pauseImage", value: w.PauseImage, places: []place{
			plugin(criImages, "pinned_images", "sandbox"), plugin(criBefore2, "sandbox_image")}},
		{field: "cni.binDirectory", value: w.CNIBinDir, places: []place{
			binDirs, plugin(criRuntime, "cni", "bin_dir"), plugin(criBefore2, "cni", "bin_dir")}},
		{field: "cni.configDirectory", value: w.CNIConfDir, places: []place{
			plugin(criRuntime, "cni", "conf_dir"), plugin(criBefore2, "cni", "conf_dir")}},
		{field: "logLevel", value: w.LogLevel, places: []place{at("debug", "level")}},
		{field: "root", value: w.Root, places: []place{at("root")}},
		{field: "state", value: w.State, places: []place{at("state")}},
		{field: "pipe", value: w.Pipe, places: []place{plugin(serverGRPC, "address"), at("grpc", "address")}},
	}
	if w.Pipe != "" {
		// Before the servers were plugins, containerd derived the address of the ttrpc server
		// from the address of the gRPC server.
		all = append(all, wish{field: "pipe", value: w.Pipe + ".ttrpc", optional: true,
			places: []place{plugin(serverTTRPC, "address")}})
	}
	var wanted []wish
	for _, wish := range all {
		if wish.value != "" {
			wanted = append(wanted, wish)
		}
	}
	return wanted
}

// set sets the value at the first of its keys that exists.
func (w wish) set(config map[string]any) error {
	for _, place := range w.places {
		table, key, ok := place.find(config)
		if !ok {
			continue
		}
		table[key] = w.value
		if place.list {
			table[key] = []any{w.value}
		}
		if _, there := table[place.clear]; there {
			table[place.clear] = ""
		}
		return nil
	}
	if w.optional {
		return nil
	}
	return fmt.Errorf("this containerd's configuration has no place for %s (looked for %s): remove it from "+
		"spec.kubernetes.containerd and set it in containerd.config", w.field, dotted(w.places[0].path))
}

// find returns the table that has the place's key. ok is false if the configuration lacks the
// key.
func (p place) find(config map[string]any) (table map[string]any, key string, ok bool) {
	table = config
	for _, name := range p.path[:len(p.path)-1] {
		if table, ok = table[name].(map[string]any); !ok {
			return nil, "", false
		}
	}
	key = p.path[len(p.path)-1]
	_, ok = table[key]
	return table, key, ok
}
