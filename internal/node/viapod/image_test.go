package viapod_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/node/viapod"
)

// emptyHives is the state of a pod whose image has empty registry hives, on a Windows that refuses these
// (github.com/microsoft/windows-host-process-containers-base-image, pull requests 15 and 16, on Windows Server 2025):
// ProcessBaseLayer fails, so containerd does not unpack the image.
func emptyHives(p *corev1.Pod) {
	waiting("ErrImagePull", "failed to pull and unpack image: failed to extract layer: hcsshim::ProcessBaseLayer: "+
		"The configuration registry database is corrupt.: unknown")(p)
}

// The pod has an image that the node already has, of a trusted registry, and the default image
// otherwise. If one does not start, the next one is tried. An image that the user has named is the only one.
func TestThePodsImage(t *testing.T) {
	const (
		pause   = "registry.k8s.io/pause:3.10"
		servers = "mcr.microsoft.com/windows/servercore:ltsc2025"
		own     = "example.com/pause:1"
		nano    = "mcr.microsoft.com/windows/nanoserver:ltsc2022"
	)
	for name, test := range map[string]struct {
		has    []string // images of the node, the largest first
		named  string
		starts string // the only image that starts
		want   string // the images that were tried
	}{
		"nothing on the node":                 {nil, "", viapod.DefaultImage, viapod.DefaultImage},
		"the default is there":                {[]string{servers, pause, viapod.DefaultImage}, "", viapod.DefaultImage, viapod.DefaultImage},
		"pause is there":                      {[]string{servers, pause}, "", pause, pause},
		"Server 2025, the default was pulled": {[]string{servers, viapod.DefaultImage, pause}, "", pause, viapod.DefaultImage + " " + pause},
		"nanoserver alone":                    {[]string{nano}, "", nano, nano},
		"pause does not start":                {[]string{servers, pause}, "", servers, pause + " " + servers},
		"only the default starts":             {[]string{servers, pause}, "", viapod.DefaultImage, pause + " " + servers + " " + viapod.DefaultImage},
		"an image of others":                  {[]string{own}, "", viapod.DefaultImage, viapod.DefaultImage},
		"a named image":                       {[]string{pause}, own, own, own},
		"a named image that does not start":   {[]string{pause}, own, pause, own},
		"none starts":                         {[]string{pause}, "", own, pause + " " + viapod.DefaultImage},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				n, err := w.client.CoreV1().Nodes().Get(t.Context(), "win-1", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for i, image := range test.has {
					n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: int64(1000-i) << 20,
						Names: []string{strings.Split(image, ":")[0] + "@sha256:0a", image}})
				}
				if _, err := w.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				var tried []string
				w.state = func(p *corev1.Pod) {
					image := p.Spec.Containers[0].Image
					tried = append(tried, image)
					if image == test.starts {
						running(p)
					} else {
						emptyHives(p)
					}
				}
				way := w.way(func(o *viapod.Options) { o.Image = test.named })
				_, err = way.Connect(t.Context())
				if got := strings.Join(tried, " "); got != test.want {
					t.Errorf("tried %s, want %s", got, test.want)
				}
				if started := strings.HasSuffix(test.want, test.starts); started != (err == nil) {
					t.Errorf("the error is %v", err)
				}
				if err != nil && !strings.Contains(err.Error(), "registry database is corrupt") {
					t.Errorf("the error lacks the cause: %v", err)
				}
				way.Leave(t.Context())
				w.nothingIsLeft()
			})
		})
	}
}
