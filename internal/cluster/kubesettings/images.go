package kubesettings

import (
	"regexp"
	"strings"
)

// image is a published image whose script starts a program with feature gates, which no setting turns off.
type image struct {
	name, suffix string // of the image without its registry, and of its tag
	gates        []string
}

// images are those of sig-windows-tools 401ee6f, which ghcr.io/kubernetes-sigs/sig-windows mirrors:
// hostprocess/calico/kube-proxy/start.ps1 sets WinDSR always, and WinOverlay on overlay networks;
// hostprocess/flannel/kube-proxy/start.ps1, up to its removal in 729ae7c, WinOverlay.
func images() []image {
	return []image{
		{name: "kube-proxy", suffix: "-calico-hostprocess", gates: []string{"WinDSR", "WinOverlay"}},
		{name: "kube-proxy", suffix: "-flannel-hostprocess", gates: []string{"WinOverlay"}},
	}
}

// imageScript matches a command that runs the script of these images, which is at the container's root:
// $env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1.
func imageScript() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|\s|mount_point[%}]?|/hpc)/kube-proxy/start\.ps1`)
}

// ImageGates returns the feature gates that the script inside a published image turns on, if a container's command runs
// that script.
func ImageGates(reference string, command []string) []string {
	name, _, _ := strings.Cut(reference, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	if !imageScript().MatchString(strings.ReplaceAll(strings.Join(command, " "), `\`, "/")) {
		return nil
	}
	for _, known := range images() {
		if strings.HasPrefix(name, known.name+":") && strings.HasSuffix(name, known.suffix) {
			return known.gates
		}
	}
	return nil
}
