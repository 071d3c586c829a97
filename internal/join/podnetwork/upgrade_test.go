package podnetwork_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// withPublished returns a mirror with the manifests of another mirror, and those of Calico in the testdata of package
// cni.
func withPublished(t *testing.T, mirror string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(mirror)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v3.31.7", "v3.32.1"} {
		for _, file := range []string{"operator-crds.yaml", "tigera-operator.yaml"} {
			packed, err := os.Open(filepath.Join("../../cluster/cni/testdata/published", "calico-"+version+"-"+file+".gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer packed.Close()
			reader, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(folder, "raw.githubusercontent.com/projectcalico/calico", version, "manifests", file)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// Each version of Calico is applied to a real API server, a second run has nothing to do, and each upgrades to the next
// in place. Without a version, an installation stays in its own.
func TestCalicoUpgradesOnARealAPIServer(t *testing.T) {
	c, mirror := lab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	makeNode(ctx, t, c, "linux-1", "linux", "6.1.0")
	runOperator(t, c)
	o := podnetwork.Options{Settings: cni.Settings{Network: cni.Calico}, Mirror: withPublished(t, mirror), Wait: 3 * time.Minute,
		Store: artifact.Options{Cache: t.TempDir()}}
	for i, version := range []string{"v3.28.5", "v3.31.7", "v3.32.1"} {
		o.Version = version
		report, err := podnetwork.Install(ctx, c, o, ui.Discard{})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if got := states(report); got["operator"] != plan.Changed || i > 0 && got["installation"] != plan.OK {
			t.Errorf("%s: %v", version, got)
		}
		present, err := cni.NewServer(c).Programs(ctx, cni.Calico)
		if err != nil || !strings.HasPrefix(version, "v3.") || present.CalicoMinor() != []int{28, 31, 32}[i] {
			t.Errorf("%s: %+v, %v", version, present, err)
		}
		for _, again := range []string{version, ""} {
			o.Version = again
			report, err := podnetwork.Install(ctx, c, o, ui.Discard{})
			expectUnchanged(t, report, err)
		}
		t.Run("schema of "+version, func(t *testing.T) { holdsSchema(ctx, t, c) })
	}
}

// holdsSchema checks that the API server takes the Installation by the published schema and rules of its version, without
// a field that the schema lacks, and that it refuses others: the check is one.
func holdsSchema(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	installations := c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "installations"))
	live, err := installations.Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		value   any
		path    []string
		refused bool
	}{
		"as it is":           {"HNS", []string{"spec", "calicoNetwork", "windowsDataplane"}, false},
		"another data plane": {"Foo", []string{"spec", "calicoNetwork", "windowsDataplane"}, true},
		"an unknown field":   {"HNS", []string{"spec", "calicoNetwork", "windowsDataPlane"}, true},
	} {
		o := live.DeepCopy()
		if err := unstructured.SetNestedField(o.Object, change.value, change.path...); err != nil {
			t.Fatal(err)
		}
		_, err := installations.Update(ctx, o, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll},
			FieldValidation: metav1.FieldValidationStrict})
		if refused := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err); refused != change.refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
