package artifact_test

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/obtain/artifact"
)

func TestMirrors(t *testing.T) {
	const name = "containerd-1.7.12-windows-amd64.tar.gz"
	archive := release(t, "1.7.12")
	checksum := []byte(sum(archive) + "  " + name)
	deep := map[string][]byte{containerd1712: archive, containerd1712 + ".sha256sum": checksum}
	flat := map[string][]byte{name: archive, name + ".sha256sum": checksum}
	for title, files := range map[string]map[string][]byte{"by host": deep, "flat": flat} {
		t.Run(title, func(t *testing.T) {
			net := connect(t)
			for at, content := range files {
				net.put("mirror.example:8443/kube/"+at, content)
			}
			folder := write(t, t.TempDir(), files)
			for _, mirror := range []string{"https://mirror.example:8443/kube/", folder,
				"file://" + filepath.ToSlash(folder)} {
				wish := containerd()
				wish.Mirror = mirror
				_, story := expect(t, runs(t, net)(), wish, containerdFiles())
				if story.text() != "" {
					t.Errorf("%s: warned %q", mirror, story.text())
				}
			}
			for _, asked := range net.requests() {
				if !strings.HasPrefix(asked, "mirror.example:8443/") {
					t.Errorf("asked %s", asked)
				}
			}
		})
	}
}

func TestMirrorsStandInForTheUsersURLs(t *testing.T) {
	folder := write(t, t.TempDir(), map[string][]byte{"ci.example+8080/builds/kubelet.exe": amd64("kubelet")})
	net := connect(t)
	wish := kubelet()
	wish.Source, wish.Mirror = "http://ci.example:8080/builds/kubelet.exe?token=x", folder
	if _, story := expect(t, runs(t, net)(), wish, kubeletFiles()); story.text() != "" {
		t.Errorf("warned %q", story.text())
	}
	if asked := net.requests(); len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}

func TestMirrorWithoutChecksum(t *testing.T) {
	net := connect(t)
	net.put("mirror.example/kubelet.exe", amd64("kubelet"))
	run := runs(t, net)
	wish := kubelet()
	wish.Mirror = "https://mirror.example"
	refuse(t, run(), wish, "https://mirror.example/dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe.sha256 (404",
		"https://mirror.example/kubelet.exe.sha256 (404", "and its checksum")

	wish.Mirror = write(t, t.TempDir(), map[string][]byte{"kubelet.exe": amd64("kubelet")})
	_, story := expect(t, run(), wish, kubeletFiles())
	if !strings.Contains(story.text(), "used unverified") {
		t.Errorf("warned %q", story.text())
	}
	write(t, wish.Mirror, map[string][]byte{"kubelet.exe.sha256": []byte(strings.Repeat("2", 64))})
	refuse(t, run(), wish, filepath.Join(wish.Mirror, "kubelet.exe.sha256"), strings.Repeat("2", 64),
		sum(amd64("kubelet")))
}

// Over plain http, a checksum does not protect against changes on the network path.
func TestPlainMirrorIsWarnedOf(t *testing.T) {
	net := connect(t)
	net.put("mirror.example/kubelet.exe", amd64("kubelet"))
	net.put("mirror.example/kubelet.exe.sha256", []byte(sum(amd64("kubelet"))))
	wish := kubelet()
	wish.Mirror = "http://mirror.example"
	if _, story := expect(t, runs(t, net)(), wish, kubeletFiles()); strings.Count(story.text(), "plain http") != 1 {
		t.Errorf("warned %q", story.text())
	}
	wish.SHA256 = sum(amd64("kubelet"))
	if _, story := expect(t, runs(t, net)(), wish, kubeletFiles()); story.text() != "" {
		t.Errorf("warned %q of what is verified", story.text())
	}
}

func TestMirrorThatIsNone(t *testing.T) {
	wish := kubelet()
	for _, mirror := range []string{"ftp://mirror.example", "https://"} {
		wish.Mirror = mirror
		refuse(t, runs(t, connect(t))(), wish, "mirror")
	}
}

// A flat mirror has one kubelet.exe, whose content changes with an update.
func TestAFlatMirrorIsUpdated(t *testing.T) {
	net := connect(t)
	run := runs(t, net)
	for _, version := range []string{"1.36.3", "1.36.4", "1.36.4"} {
		content := amd64("kubelet " + version + " " + t.Name())
		net.put("mirror.example/kubelet.exe", content)
		net.put("mirror.example/kubelet.exe.sha256", []byte(sum(content)))
		wish := kubelet()
		wish.Mirror, wish.Version = "https://mirror.example", version
		expect(t, run(), wish, map[string][]byte{"kubelet.exe": content})
	}
}

// A file that a mirror served once under a name with its version is not requested again.
func TestAMirrorIsNotAskedAgain(t *testing.T) {
	archive := release(t, "1.7.12")
	net := connect(t)
	net.put("mirror.example/containerd-1.7.12-windows-amd64.tar.gz", archive)
	net.put("mirror.example/containerd-1.7.12-windows-amd64.tar.gz.sha256sum", []byte(sum(archive)))
	run := runs(t, net)
	wish := containerd()
	wish.Mirror = "https://mirror.example"
	expect(t, run(), wish, containerdFiles())
	net.requests()
	expect(t, run(), wish, containerdFiles())
	if asked := net.requests(); len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}

// Uses swdt's own HTTP client and a real server.
func TestOwnClient(t *testing.T) {
	server := httptest.NewServer(serveFiles(map[string][]byte{
		"/dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe":        amd64("kubelet"),
		"/dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe.sha256": []byte(sum(amd64("kubelet"))),
	}))
	defer server.Close()
	wish := kubelet()
	wish.Mirror = server.URL
	set, _ := expect(t, artifact.NewStore(artifact.Options{Cache: t.TempDir()}), wish, kubeletFiles())
	if want := server.URL + "/dl.k8s.io/v1.36.3/bin/windows/amd64/kubelet.exe"; set.From != want {
		t.Errorf("from %s, want %s", set.From, want)
	}
}
