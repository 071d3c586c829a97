package manifest

// krewPlugin is krew's manifest of a plugin of kubectl.
type krewPlugin struct {
	APIVersion string       `yaml:"apiVersion"`
	Kind       string       `yaml:"kind"`
	Metadata   krewMetadata `yaml:"metadata"`
	Spec       krewSpec     `yaml:"spec"`
}

type krewMetadata struct {
	Name string `yaml:"name"`
}

type krewSpec struct {
	Version          string         `yaml:"version"`
	Homepage         string         `yaml:"homepage"`
	ShortDescription string         `yaml:"shortDescription"`
	Description      string         `yaml:"description"`
	Platforms        []krewPlatform `yaml:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `yaml:"selector"`
	URI      string       `yaml:"uri"`
	SHA256   string       `yaml:"sha256"`
	Bin      string       `yaml:"bin"`
	Files    []krewFile   `yaml:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type krewFile struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

func (r Release) krew(all map[string][]byte) error {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: krewMetadata{"swdt"},
		Spec: krewSpec{Version: r.Version.Tag(), Homepage: homepage,
			ShortDescription: "Set up, push to and inspect Windows nodes",
			Description:      description + ".\nAs a plugin, -n is the namespace; --node chooses nodes.\n"},
	}
	for _, a := range r.Archives {
		program := a.Target.Program()
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.Target.OS, "arch": a.Target.Arch}},
			URI:      r.url(a), SHA256: a.SHA256, Bin: program,
			Files: []krewFile{{program, "."}, {"LICENSE", "."}, {"THIRD_PARTY_NOTICES", "."}},
		})
	}
	text, err := marshal(plugin)
	all["swdt-krew.yaml"] = text
	return err
}
