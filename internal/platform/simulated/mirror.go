package simulated

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Release is the content of a mirror: these versions of the programs, for this processor. A program
// without a version is left out.
type Release struct {
	Kubernetes   string // v1.36.3
	Containerd   string // 1.7.12
	Crictl       string // 1.36.0
	Architecture string // default: amd64
	// Faults are the faults of programs, by a name such as kubelet.
	Faults map[string]Fault
}

func (r Release) program(name, version string) []byte {
	return Binary(BinarySpec{Name: name, Version: version, Fault: r.Faults[name], Machine: r.Architecture})
}

// WriteMirror writes a folder with programs that a simulated machine runs. The folder has the
// layout of the servers that publish the real programs:
//
//	FOLDER/dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe
//	FOLDER/github.com/containerd/containerd/releases/download/v1.7.12/containerd-1.7.12-windows-amd64.tar.gz
//
// Each file has its checksum beside it. Several releases can share a folder.
func WriteMirror(folder string, r Release) error {
	if r.Architecture == "" {
		r.Architecture = "amd64"
	}
	files := map[string][]byte{}
	if r.Kubernetes != "" {
		version := "v" + strings.TrimPrefix(r.Kubernetes, "v")
		for _, name := range []string{"kubelet", "kubeadm", "kubectl", "kube-log-runner", "kube-proxy"} {
			files[fmt.Sprintf("dl.k8s.io/%s/bin/windows/%s/%s.exe", version, r.Architecture, name)] = r.program(name,
				version)
		}
	}
	if version := strings.TrimPrefix(r.Containerd, "v"); version != "" {
		archive, err := archive(map[string][]byte{
			"bin/containerd.exe":                r.program("containerd", "v"+version),
			"bin/containerd-shim-runhcs-v1.exe": r.program("containerd-shim-runhcs-v1", "v"+version),
			"bin/ctr.exe":                       r.program("ctr", "v"+version),
		})
		if err != nil {
			return err
		}
		files[fmt.Sprintf("github.com/containerd/containerd/releases/download/v%s/containerd-%[1]s-windows-%s.tar.gz",
			version, r.Architecture)] = archive
	}
	if version := strings.TrimPrefix(r.Crictl, "v"); version != "" {
		archive, err := archive(map[string][]byte{"crictl.exe": r.program("crictl", "v"+version)})
		if err != nil {
			return err
		}
		files[fmt.Sprintf("github.com/kubernetes-sigs/cri-tools/releases/download/v%s/crictl-v%[1]s-windows-%s.tar.gz",
			version, r.Architecture)] = archive
	}
	for name, content := range files {
		if err := writeWithChecksum(filepath.Join(folder, filepath.FromSlash(name)), content); err != nil {
			return fmt.Errorf("lay out a mirror: %w", err)
		}
	}
	return nil
}

// writeWithChecksum writes a file and its checksum in the form of its publisher: dl.k8s.io and
// cri-tools publish the hash alone, and containerd publishes a line of sha256sum in .sha256sum.
func writeWithChecksum(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	if base := filepath.Base(path); strings.HasPrefix(base, "containerd-") {
		return os.WriteFile(path+".sha256sum", []byte(sum+"  "+base+"\n"), 0o644)
	}
	return os.WriteFile(path+".sha256", []byte(sum), 0o644)
}

func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, name := range sortedKeys(files) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
