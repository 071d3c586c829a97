package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// samplesFolder holds the sample binaries, in a sandbox's folder.
const samplesFolder = "binaries"

// samples returns the binaries that a simulated node's file pushes: newer versions of the node's
// programs, and a kubelet that crashes, as a replacement for the good one.
func samples() map[string]simulated.BinarySpec {
	const size = 256 << 10
	return map[string]simulated.BinarySpec{
		"containerd.exe":      {Name: "containerd", Version: "v1.7.12", Size: size},
		"kubelet.exe":         {Name: "kubelet", Version: "v1.29.0", Size: size},
		"kubelet-crashes.exe": {Name: "kubelet", Version: "v1.29.1", Size: size, Fault: simulated.CrashAtStart},
	}
}

// writeSamples writes the sample binaries and returns the part of the node file that uses them.
func writeSamples(f folder) (section string, err error) {
	folder := f.file(samplesFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("write the sandbox's sample binaries: %w", err)
	}
	for name, spec := range samples() {
		if err := os.WriteFile(filepath.Join(folder, name), simulated.Binary(spec), 0o700); err != nil {
			return "", fmt.Errorf("write the sandbox's sample binaries: %w", err)
		}
	}
	return strings.NewReplacer(
		"CONTAINERD", simulated.ContainerdPath, "KUBELET", simulated.KubeletPath,
	).Replace(samplesSection), nil
}

const samplesSection = `
  # What "swdt setup" brings the node to.
  setup:
    enableRDP: true
    features:
      - Containers
    hosts:
      - address: 10.0.0.10
        names: [registry.example]
    path:
      - C:\k

  # What "swdt push" brings onto the node. These binaries are made up, as the
  # machine is; put your own in their place, or binaries/kubelet-crashes.exe.
  kubernetes:
    provisioners:
      - name: containerd
        version: 1.7.12
        sourceURL: ./binaries/containerd.exe
        destination: CONTAINERD
      - name: kubelet
        sourceURL: ./binaries/kubelet.exe
        destination: KUBELET
`
