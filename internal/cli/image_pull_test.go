package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/imagepull"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
)

// puller has simulated nodes, which run Windows 10.0.20348.2849 and containerd, and a registry.
type puller struct {
	*workplace
	registry *registrytest.Registry
}

func newPuller(t *testing.T, nodes int) *puller {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	p := &puller{&workplace{t: t, folder: t.TempDir()}, registrytest.Start(t)}
	var file strings.Builder
	for i := range nodes {
		_, document, _ := simulatedNodeWith(t, fmt.Sprintf("win-%d", i+1), p.folder, sandbox.AgentMain,
			func(o *simulated.Options) { o.Internet = true })
		file.WriteString(document + "---\n")
	}
	p.write("swdt.yaml", []byte(file.String()))
	return p
}

// put stores an image for a version of Windows, and returns its name with the digest.
func (p *puller) put(repository, version string) string {
	digest := p.registry.PutIndex(p.t, repository, "1", []registrytest.Manifest{{
		Platform: json.RawMessage(`{"os":"windows","architecture":"amd64","os.version":"` + version + `"}`),
		Layers:   []registrytest.Layer{{Digest: "sha256:" + strings.Repeat("a", 64), Size: 1_000_000}}}})
	return p.registry.Host + "/" + repository + "@" + digest
}

// pull runs image pull, and returns the nodes with their results and those of their images.
func (p *puller) pull(code int, args ...string) (results []string, story string) {
	p.t.Helper()
	told := &lines{}
	got, stdout := p.swdt(p.t.Context(), told, append([]string{"image", "pull", "-o", "json"}, args...)...)
	var report imagepull.Report
	if err := json.Unmarshal([]byte(stdout), &report); got != code || err != nil {
		p.t.Fatalf("%s: exit code %d, want %d, %v\n%s%s", args, got, code, err, stdout, told)
	}
	for _, n := range report.Nodes {
		line := n.Name + " " + n.Result
		for _, i := range n.Images {
			line += " " + i.Result
		}
		results = append(results, line)
	}
	return results, told.String()
}

func (p *puller) want(results []string, want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, results); diff != "" {
		p.t.Errorf("-want +got:\n%s", diff)
	}
}

func TestImagesArePulled(t *testing.T) {
	p := newPuller(t, 2)
	image := p.put("team/app", "10.0.20348.1006")
	results, _ := p.pull(0, image, "--dry-run")
	p.want(results, "win-1 unchanged notBegun", "win-2 unchanged notBegun")
	results, _ = p.pull(0, image, "-n", "win-2")
	p.want(results, "win-2 changed pulled")
	results, _ = p.pull(0, image)
	p.want(results, "win-1 changed pulled", "win-2 unchanged unchanged")

	// A registry that your machine cannot read may be one that the node can.
	away := "127.0.0.1:1/team/app:1"
	results, story := p.pull(0, away, "-n", "win-1")
	p.want(results, "win-1 changed pulled")
	if !strings.Contains(story, away+" is not checked, and the nodes try to pull it: contact the registry") {
		t.Error(story)
	}
	results, _ = p.pull(0, away, "-n", "win-1")
	p.want(results, "win-1 unchanged unchanged")
}

// An image that one node refuses is pulled on no node.
func TestARefusedImageIsPulledNowhere(t *testing.T) {
	p := newPuller(t, 2)
	good, tooNew := p.put("team/app", "10.0.20348.1006"), p.put("team/new", "10.0.26100.1")
	results, story := p.pull(1, good, tooNew)
	p.want(results, "win-1 failed notBegun refused", "win-2 failed notBegun refused")
	if !strings.Contains(story, "takes none of its manifests") || !strings.Contains(story, "pull it with --force") {
		t.Error(story)
	}
	results, _ = p.pull(0, good, tooNew, "--force", "-n", "win-1")
	p.want(results, "win-1 changed pulled pulled")
}

// After a failure no further node begins, and the same command goes on later.
func TestAFailedPullStopsTheOthers(t *testing.T) {
	p := newPuller(t, 3)
	image := p.put("team/app", "10.0.20348.1006")
	p.pull(0, image, "-n", "win-1")
	results, story := p.pull(1, image, p.registry.Host+"/team/missing:1", "--parallel", "1")
	p.want(results, "win-1 failed unchanged failed", "win-2 failed notBegun notBegun", "win-3 failed notBegun notBegun")
	if !strings.Contains(story, "not begun: the change has failed on win-1") {
		t.Error(story)
	}
	results, _ = p.pull(0, image, "--parallel", "1")
	p.want(results, "win-1 unchanged unchanged", "win-2 changed pulled", "win-3 changed pulled")
}

// The registry is asked once for an image, however many nodes there are, and the pods of manifests name images.
func TestTheRegistryIsAskedOncePerImage(t *testing.T) {
	p := newPuller(t, 3)
	image := p.put("team/app", "10.0.20348.1006")
	p.write("web.yaml", []byte("kind: Job\napiVersion: batch/v1\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n"+
		"      os: {name: windows}\n      containers: [{name: web, image: \""+image+"\"}]\n"))
	var mutex sync.Mutex
	asked := map[string]int{}
	p.registry.Intercept(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		mutex.Lock()
		defer mutex.Unlock()
		asked[r.URL.Path]++
		return false
	})
	results, _ := p.pull(0, "--manifests", p.folder+"/web.yaml")
	p.want(results, "win-1 changed pulled", "win-2 changed pulled", "win-3 changed pulled")
	for path, times := range asked {
		if times != 1 {
			t.Errorf("%s was asked for %d times", path, times)
		}
	}
}

// With a cluster, the images are those of its workloads, here of a bare pod.
func TestTheImagesOfAClusterArePulled(t *testing.T) {
	p := newPuller(t, 1)
	image := p.put("team/app", "10.0.20348.1006")
	control, err := cluster_simulated.Start(cluster_simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	kubeconfig := filepath.Join(p.folder, "kubeconfig")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	core := opened.Clientset().CoreV1()
	_, err = core.Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: corev1.PodSpec{
		OS: &corev1.PodOS{Name: corev1.Windows}, Containers: []corev1.Container{{Name: "app", Image: image}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	results, story := p.pull(1, "--kubeconfig", kubeconfig)
	p.want(results, "win-1 failed")
	_, after, found := strings.Cut(story, `it has no Windows node "`)
	name, _, _ := strings.Cut(after, `"`)
	if !found {
		t.Fatal(story)
	}
	if _, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelOSStable: "windows"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	results, _ = p.pull(0, "--kubeconfig", kubeconfig)
	p.want(results, "win-1 changed pulled")
}
