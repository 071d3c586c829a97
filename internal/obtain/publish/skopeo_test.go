//go:build oracles

package publish_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/registrytest"
)

// TestSkopeoCopiesWhatIsPublished lets skopeo copy what `swdt fleet publish` pushes, with patches and from several tags,
// to another registry: it reads the manifest, and verifies the digest and the size of each blob.
func TestSkopeoCopiesWhatIsPublished(t *testing.T) {
	from, to := registrytest.Start(t), registrytest.Start(t)
	p := newPublisher(t, from)
	p.publish(t, component(t, "kubelet", build("one")))
	report := p.publish(t, component(t, "kubelet", build("two")), component(t, "containerd", build("2.4.2")))
	target := to.Host + "/copied/node:dev"
	skopeo(t, "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "docker://"+from.Host+"/team/node:dev", "docker://"+target)
	manifest := skopeo(t, "inspect", "--raw", "--tls-verify=false", "docker://"+target)
	if sum := sha256.Sum256([]byte(manifest)); "sha256:"+hex.EncodeToString(sum[:]) != report.Digest {
		t.Errorf("the copy is %x, want %s", sum, report.Digest)
	}
	t.Logf("%d blobs, the digest of the copy is the same", strings.Count(manifest, `"digest"`))
}

// skopeo runs skopeo, and returns its stdout.
func skopeo(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "skopeo", append([]string{"--insecure-policy"}, args...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("skopeo %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
