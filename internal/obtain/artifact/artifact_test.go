package artifact_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

func kubelet() artifact.Wish {
	return artifact.Wish{Component: artifact.Kubelet, Version: "v1.36.3", Field: "spec.kubernetes.kubelet.source"}
}

func containerd() artifact.Wish {
	return artifact.Wish{Component: artifact.Containerd, Version: "1.7.12", Field: "spec.kubernetes.containerd.source"}
}

func kubeletFiles() map[string][]byte { return map[string][]byte{"kubelet.exe": amd64("kubelet")} }

func containerdFiles() map[string][]byte {
	return map[string][]byte{
		"containerd.exe": amd64("containerd 1.7.12"), "ctr.exe": amd64("ctr 1.7.12"),
		"containerd-shim-runhcs-v1.exe": amd64("shim 1.7.12"),
	}
}

func TestPublishedIsVerifiedAndCached(t *testing.T) {
	net := publish(t)
	run := runs(t, net)
	for _, c := range []struct {
		wish artifact.Wish
		want map[string][]byte
		asks []string
	}{
		{kubelet(), kubeletFiles(), []string{kubelet1363, kubelet1363 + ".sha256"}},
		{containerd(), containerdFiles(), []string{containerd1712, containerd1712 + ".sha256sum"}},
	} {
		set, story := expect(t, run(), c.wish, c.want)
		switch {
		case set.Version != strings.TrimPrefix(c.wish.Version, "v"):
			t.Errorf("set.Version is %v, want %v", set.Version, strings.TrimPrefix(c.wish.Version, "v"))
		case set.From != "https://"+c.asks[0]:
			t.Errorf("set.From is %v, want %v", set.From, "https://"+c.asks[0])
		case story.text() != "":
			t.Errorf(`story.text() is %q, want ""`, story.text())
		}
		if asked := sorted(net.requests()); !slices.Equal(asked, c.asks) {
			t.Errorf("asked for %v, want %v", asked, c.asks)
		}
		// A later run makes no requests.
		expect(t, run(), c.wish, c.want)
		if asked := net.requests(); len(asked) > 0 {
			t.Errorf("asked again: %v", asked)
		}
	}
}

func TestPublishedURLsOfComponents(t *testing.T) {
	net := connect(t)
	run := runs(t, net)
	for _, c := range []struct {
		wish artifact.Wish
		want string
	}{
		{artifact.Wish{Component: artifact.Kubeadm, Version: "1.29.0"},
			"dl.k8s.io/v1.29.0/bin/windows/amd64/kubeadm.exe.sha256"},
		{artifact.Wish{Component: artifact.Kubectl, Version: "1.36.3", Arch: "arm64"},
			"dl.k8s.io/v1.36.3/bin/windows/arm64/kubectl.exe.sha256"},
		{artifact.Wish{Component: artifact.LogRunner, Version: "v1.36.3"},
			"dl.k8s.io/v1.36.3/bin/windows/amd64/kube-log-runner.exe.sha256"},
		{artifact.Wish{Component: artifact.Crictl, Version: "v1.36.0"},
			"github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-windows-amd64.tar.gz.sha256"},
		{artifact.Wish{Component: artifact.Containerd, Version: "v2.4.2", Arch: "arm64"},
			"github.com/containerd/containerd/releases/download/v2.4.2/containerd-2.4.2-windows-arm64.tar.gz.sha256sum"},
	} {
		err := refuse(t, run(), c.wish, "https://"+c.want+" (404 Not Found)", "windows/")
		var missing *artifact.MissingError
		var status *source.StatusError
		switch {
		case !errors.As(err, &missing):
			t.Errorf("the error is %v, a %T, want a %T", err, err, missing)
		case !errors.As(err, &status):
			t.Errorf("the error is %v, a %T, want a %T", err, err, status)
		case status.Status != http.StatusNotFound:
			t.Errorf("status.Status is %v, want %v", status.Status, http.StatusNotFound)
		}
		if asked := net.requests(); !slices.Equal(asked, []string{c.want}) {
			t.Errorf("asked for %v, want %s", asked, c.want)
		}
	}
}

func TestMissingSaysWhatAndWhereAndTheRemedy(t *testing.T) {
	run := runs(t, connect(t))
	refuse(t, run(), kubelet(), "kubelet 1.36.3 for windows/amd64 was not found", "https://"+kubelet1363,
		"set spec.kubernetes.kubelet.source")
	nothing := t.TempDir()
	wish := containerd()
	wish.Mirror = nothing
	refuse(t, run(), wish, filepath.Join(nothing, filepath.FromSlash(containerd1712)),
		filepath.Join(nothing, "containerd-1.7.12-windows-amd64.tar.gz"), "into the mirror")
	wish.Mirror, wish.Version = "", ""
	refuse(t, run(), wish, "no version of containerd is set", "spec.kubernetes.containerd.source")
	wish.Source = filepath.Join(nothing, "containerd.exe")
	if err := refuse(t, run(), wish, "does not exist", "spec.kubernetes.containerd.source"); !errors.Is(
		err, fs.ErrNotExist) {
		t.Errorf("%v is another error", err)
	}
}

func TestChecksums(t *testing.T) {
	other := strings.Repeat("0", 64)
	net := publish(t)
	run := runs(t, net)

	net.put(kubelet1363+".sha256", []byte(other))
	err := refuse(t, run(), kubelet(), sum(amd64("kubelet")), other, "https://"+kubelet1363,
		"https://"+kubelet1363+".sha256")
	var mismatch *artifact.ChecksumError
	switch {
	case !errors.As(err, &mismatch):
		t.Errorf("the error is %v, a %T, want a %T", err, err, mismatch)
	case mismatch.Got != sum(amd64("kubelet")):
		t.Errorf("mismatch.Got is %v, want %v", mismatch.Got, sum(amd64("kubelet")))
	case mismatch.Want != other:
		t.Errorf("mismatch.Want is %v, want %v", mismatch.Want, other)
	}
	net.put(kubelet1363+".sha256", []byte("<html>404</html>"))
	refuse(t, run(), kubelet(), "has no SHA-256 of kubelet.exe")
	net.put(kubelet1363+".sha256", []byte(other+" *another.exe\n"+strings.ToUpper(sum(amd64("kubelet")))+
		" *bin/kubelet.exe\r\n"))
	expect(t, run(), kubelet(), kubeletFiles())

	// The hash in the node file takes precedence, and no other is requested.
	net.requests()
	wish := containerd()
	wish.SHA256 = other
	refuse(t, run(), wish, other, sum(release(t, "1.7.12")))
	wish.SHA256 = strings.ToUpper(sum(release(t, "1.7.12")))
	expect(t, run(), wish, containerdFiles())
	if asked := net.requests(); slices.Contains(asked, containerd1712+".sha256sum") {
		t.Errorf("asked for %v", asked)
	}
}

// A release without a published checksum is not installed.
func TestPublishedWithoutChecksumIsRefused(t *testing.T) {
	net := connect(t)
	net.put(kubelet1363, amd64("kubelet"))
	refuse(t, runs(t, net)(), kubelet(), kubelet1363+".sha256 (404 Not Found)")
	if asked := net.requests(); slices.Contains(asked, kubelet1363) {
		t.Error("it was downloaded")
	}
}

func TestArchitecture(t *testing.T) {
	folder := write(t, t.TempDir(), map[string][]byte{"kubelet.exe": arm64("kubelet")})
	wish := kubelet()
	wish.Source = filepath.Join(folder, "kubelet.exe")
	run := runs(t, connect(t))
	err := refuse(t, run(), wish, "kubelet.exe", "is built for arm64, but the node is amd64")
	var machine *source.MachineError
	if !errors.As(err, &machine) {
		t.Errorf("%v is another error", err)
	}
	wish.Arch = "arm64"
	expect(t, run(), wish, map[string][]byte{"kubelet.exe": arm64("kubelet")})
}

func TestLocalSources(t *testing.T) {
	all := containerdFiles()
	archive := release(t, "1.7.12")
	folder := write(t, t.TempDir(), map[string][]byte{
		"flat/containerd.exe": all["containerd.exe"], "flat/ctr.exe": all["ctr.exe"], "flat/readme": nil,
		"deep/bin/containerd.exe": all["containerd.exe"],
		"renamed-build.exe":       all["containerd.exe"],
		"some.tgz":                archive,
		"empty/readme":            nil,
		"page.exe":                []byte("<!DOCTYPE html><html></html>"),
	})
	run := runs(t, connect(t))
	two := map[string][]byte{"containerd.exe": all["containerd.exe"], "ctr.exe": all["ctr.exe"]}
	one := map[string][]byte{"containerd.exe": all["containerd.exe"]}
	for path, want := range map[string]map[string][]byte{"flat": two, "deep": one, "renamed-build.exe": one,
		"some.tgz": all} {
		wish := containerd()
		wish.Version, wish.Source = "", filepath.Join(folder, path)
		set, story := expect(t, run(), wish, want)
		switch {
		case set.From != wish.Source:
			t.Errorf("%s: set.From is %v, want %v", path, set.From, wish.Source)
		case set.Version != "":
			t.Errorf(`%s: set.Version is %q, want ""`, path, set.Version)
		case story.text() != "":
			t.Errorf(`%s: story.text() is %q, want ""`, path, story.text())
		}
	}
	for path, want := range map[string]string{"empty": "has no containerd.exe", "page.exe": "is a web page"} {
		wish := containerd()
		wish.Source = filepath.Join(folder, path)
		refuse(t, run(), wish, path, want)
	}
	wish := containerd()
	wish.Source, wish.SHA256 = filepath.Join(folder, "flat"), sum(archive)
	refuse(t, run(), wish, "is a folder, but sha256 belongs to a file")
	wish.Source = filepath.Join(folder, "some.tgz")
	expect(t, run(), wish, all)
	wish.SHA256 = strings.Repeat("1", 64)
	refuse(t, run(), wish, "some.tgz", sum(archive))
}

func TestUserURLs(t *testing.T) {
	net := connect(t)
	net.put("ci.example/kubelet.exe", amd64("kubelet"))
	run := runs(t, net)
	wish := kubelet()
	for url, warns := range map[string]bool{"https://me:secret@ci.example/kubelet.exe?token=secret": false,
		"http://ci.example/kubelet.exe?token=secret": true} {
		wish.Source = url
		set, story := expect(t, run(), wish, kubeletFiles())
		if strings.Contains(set.From+story.text(), "secret") || strings.Contains(story.text(), "plain http") != warns {
			t.Errorf("%s: from %s, warned %q", url, set.From, story.text())
		}
	}
	wish.SHA256 = sum(amd64("kubelet"))
	if _, story := expect(t, run(), wish, kubeletFiles()); story.text() != "" {
		t.Errorf("warned %q of what is verified", story.text())
	}
	wish.Source = "https://ci.example/none.exe?token=secret"
	wish.SHA256 = ""
	if err := refuse(t, run(), wish, "https://ci.example/none.exe (404 Not Found)"); strings.Contains(
		err.Error(), "secret") {
		t.Errorf("tells a secret: %v", err)
	}
}

// Many nodes request the same component at once.
func TestOneDownloadForAll(t *testing.T) {
	net := publish(t)
	store := runs(t, net)()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { expect(t, store, containerd(), containerdFiles()) })
	}
	all.Wait()
	if asked := net.requests(); len(asked) != 2 {
		t.Errorf("asked %v", asked)
	}
}

// Several runs of swdt, as far as a single process can simulate them.
func TestRunsAtOnceShareACache(t *testing.T) {
	net := publish(t)
	run := runs(t, net)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { expect(t, run(), containerd(), containerdFiles()) })
	}
	all.Wait()
}

func TestCancelled(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := runs(t, publish(t))().Resolve(ctx, containerd(), ui.Discard{}); !errors.Is(err, cause) {
		t.Errorf("the error is %v, want %v", err, cause)
	}
}
