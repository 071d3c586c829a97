package manifests_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// The program on the nodes has all rights there. So an installation that names no images runs none: RFC 2606
// reserves the domain .invalid, so the name of a registry below it cannot be registered by a stranger.
func TestNoStrangerCanServeTheImages(t *testing.T) {
	text, err := manifests.YAML(manifests.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for line := range strings.Lines(string(text)) {
		image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: ")
		if !ok {
			continue
		}
		images++
		if !strings.HasPrefix(image, "registry.invalid/") {
			t.Errorf("the manifests have the image %s", image)
		}
	}
	if images != 2 {
		t.Errorf("%d images, want those of the controller and of the nodes", images)
	}
}
