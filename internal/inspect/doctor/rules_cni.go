package doctor

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func cniRules() []Rule {
	return []Rule{
		{
			ID: "cni-config", Title: "the pod network is configured", Severity: finding.Error, Needs: []string{"cni"},
			Link:  docsDebug,
			Means: "The runtime has no network for pods: the node is NotReady.",
			Remedy: "the pod network's installer writes the configuration: `kubectl get pods -A -o wide` shows " +
				"whether the installer runs here, and `swdt logs list` lists its logs", look: lookAtCNIConfig,
		},
		{
			ID: "cni-several", Title: "the node has one pod network", Severity: finding.Warning,
			Needs: []string{"cni"}, Link: docsCRI,
			Means: "The runtime uses the first file by name: if an earlier pod network left its file behind, pods " +
				"may get addresses that are not routed.",
			Remedy: "remove the files of networks that are no longer in use, and restart containerd",
			look:   lookAtSeveralCNI,
		},
		{
			ID: "cni-binaries", Title: "the pod network's plugins are installed", Severity: finding.Error,
			Needs: []string{"cni"}, Link: docsDebug,
			Means: "Every pod stays in ContainerCreating: \"failed to find plugin in path\".",
			Remedy: "let the pod network's installer install them, or set " +
				"spec.kubernetes.containerd.cni.binDirectory to their folder", look: lookAtCNIBinaries,
		},
	}
}

func lookAtCNIConfig(f *Facts) (all []finding.Finding) {
	cni := f.CNI.Value
	switch {
	case len(cni.Files) == 0 && len(cni.Elsewhere) > 0:
		return one(finding.New(strings.Join(cni.Elsewhere, ", "),
			"the configuration of the pod network is in another folder than %s, which the runtime reads", cni.Folder).
			Remedied("set spec.kubernetes.containerd.cni.configDirectory to that folder and run `swdt join`, or move " +
				"the file"))
	case len(cni.Files) == 0:
		return one(finding.New(cni.Folder+" has no .conf, .conflist or .json", "no pod network is configured"))
	}
	for i, file := range cni.Files {
		if file.Problem == "" {
			continue
		}
		found := finding.New(file.Path+": "+file.Problem, "the configuration of a pod network cannot be read")
		if i > 0 { // the runtime uses only the first file
			found = found.As(finding.Warning)
		}
		all = append(all, found)
	}
	return all
}

func lookAtSeveralCNI(f *Facts) []finding.Finding {
	var paths []string
	for _, file := range f.CNI.Value.Files {
		paths = append(paths, file.Path)
	}
	if len(paths) < 2 {
		return nil
	}
	return one(finding.New(strings.Join(paths, ", "), "there are %d pod networks, and the runtime uses the first",
		len(paths)))
}

func lookAtCNIBinaries(f *Facts) (all []finding.Finding) {
	cni := f.CNI.Value
	for _, file := range cni.Files[:min(1, len(cni.Files))] { // the runtime uses only the first file
		for _, plugin := range file.Plugins {
			if !slices.Contains(cni.Binaries, folded(plugin)+".exe") && !slices.Contains(cni.Binaries, folded(plugin)) {
				all = append(all, finding.New("looked in "+strings.Join(cni.Folders, ", "),
					"there is no %s.exe, which %s requires", plugin, file.Path))
			}
		}
	}
	return all
}
