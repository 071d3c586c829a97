package kindcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kind "sigs.k8s.io/kind/pkg/cluster"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// Options select the file to which Create writes the access to a new cluster.
type Options struct {
	// Kubeconfig is the file to which Create adds the cluster. The cluster's context becomes the
	// file's current context. Default: kubectl's file, KUBECONFIG or ~/.kube/config.
	Kubeconfig string
}

// Create makes the cluster of a document if the cluster does not exist. It first removes the
// remains of an interrupted Create. If kind fails or ctx ends meanwhile, Create removes everything
// that it has made. If a cluster of that name exists, but swdt did not make it, the error is an
// *OtherToolError; if swdt made it from other settings, the error is a *DifferentError.
func (c *Clusters) Create(ctx context.Context, doc config.ClusterDocument, o Options, r ui.Reporter) (Report, error) {
	opened, err := c.Ensure(ctx, doc, o, r)
	return opened.Report, err
}

// Ensure does the same as Create, and also returns the access to the cluster.
func (c *Clusters) Ensure(ctx context.Context, doc config.ClusterDocument, o Options, r ui.Reporter) (Opened, error) {
	name := doc.Cluster.Metadata.Name
	lock, err := c.records.lock(name)
	if err != nil {
		return Opened{}, err
	}
	defer lock.Close()
	wanted, err := Config(doc.Cluster)
	if err != nil {
		return Opened{}, err
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		return Opened{}, fmt.Errorf("write kind's configuration: %w", err)
	}
	begun, there, err := c.look(name)
	switch {
	case err != nil:
		return Opened{}, err
	case there && begun.Complete:
		return c.existing(ctx, doc, begun, text, r)
	case there || begun.Begun != (time.Time{}):
		r.Info("removing what an interrupted create of cluster %s has left", name)
		if _, err := c.discard(ctx, begun); err != nil {
			return Opened{}, err
		}
	}
	if err := c.check(ctx, doc); err != nil {
		return Opened{}, err
	}
	hasNetwork, err := c.kind.HasNetwork(ctx)
	if err != nil {
		return Opened{}, fmt.Errorf("list the networks of containers: %w", err)
	}
	earlier, err := readEarlier(o.Kubeconfig)
	if err != nil {
		return Opened{}, err
	}
	one := record{
		Version: recordVersion, Name: name, Begun: time.Now().UTC(), Kubeconfig: o.Kubeconfig, Wanted: text,
		MadeNetwork: !hasNetwork, Earlier: earlier,
	}
	if err := c.records.put(one); err != nil {
		return Opened{}, err
	}
	if c.lacksImage(ctx, wanted) {
		ui.Downloading(r)
	}
	c.warnOfCgroups(ctx, r)
	defer interrupt.AllowTime(ctx, cleanLimit)()
	if err := c.make(ctx, one, kind.CreateWithV1Alpha4Config(withPatience(wanted)), r); err != nil {
		err = c.explain(ctx, doc, wanted.Nodes[0].Image, err)
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		_, discarded := c.discard(clean, one)
		return Opened{}, errors.Join(err, discarded)
	}
	one.Complete = true
	if err := c.records.put(one); err != nil {
		return Opened{}, err
	}
	changes, err := c.provideAndRecord(ctx, one, doc, r)
	if err != nil {
		return Opened{}, err
	}
	made, err := c.describe(ctx, one)
	made.Result, made.Changes = fleet.Changed, append([]string{madeByKind}, changes...)
	return made, err
}

// lacksImage reports whether the container runtime lacks an image of the configuration's nodes, so that
// kind downloads it.
func (c *Clusters) lacksImage(ctx context.Context, wanted *v1alpha4.Cluster) bool {
	return slices.ContainsFunc(wanted.Nodes, func(n v1alpha4.Node) bool {
		_, err := c.kind.ImageID(ctx, n.Image)
		return err != nil
	})
}

// madeByKind is the first change of a Create that makes the cluster.
const madeByKind = "make the cluster with kind"

// provideAndRecord gives the Linux nodes of a cluster their images and mirrors, and stores the
// record.
func (c *Clusters) provideAndRecord(
	ctx context.Context, one record, doc config.ClusterDocument, r ui.Reporter,
) ([]string, error) {
	wanted := *doc.Cluster.Spec.ControlPlane.Kind
	// Record the mirrors first: if this create is killed while it writes them, a later one can remove them.
	for _, mirror := range wanted.RegistryMirrors {
		if !slices.Contains(one.Mirrors, mirror.Registry) {
			one.Mirrors = append(one.Mirrors, mirror.Registry)
		}
	}
	if err := c.records.put(one); err != nil {
		return nil, err
	}
	changes, err := c.provide(ctx, &one, wanted, false, r)
	if err == nil {
		c.warnOfMirrors(ctx, doc, one.Name, r)
	}
	return changes, errors.Join(err, c.records.put(one))
}

// Plan lists the changes of a Create.
type Plan struct {
	Name string `json:"name"`
	// Result is changed or unchanged.
	Result string `json:"result"`
	// Configuration is the configuration for kind, in YAML; empty if the cluster exists.
	Configuration string `json:"configuration"`
	// Changes describes the changes in words.
	Changes []string `json:"changes"`
}

// Plan returns the changes that Create would make for a document.
func (c *Clusters) Plan(ctx context.Context, doc config.ClusterDocument) (Plan, error) {
	plan := Plan{Name: doc.Cluster.Metadata.Name, Result: fleet.Changed, Changes: []string{}}
	wanted, err := Config(doc.Cluster)
	if err != nil {
		return plan, err
	}
	begun, there, err := c.look(plan.Name)
	if err != nil {
		return plan, err
	}
	if !there || !begun.Complete {
		plan.Changes = append([]string{madeByKind}, later(*doc.Cluster.Spec.ControlPlane.Kind)...)
		plan.Configuration, err = written(withPatience(wanted))
		return plan, errors.Join(err, c.check(ctx, doc))
	}
	text, err := json.Marshal(wanted)
	if err == nil && !bytes.Equal(compact(begun.Wanted), text) {
		err = different(doc, begun)
	}
	if err != nil {
		return plan, err
	}
	changes, err := c.provide(ctx, &begun, *doc.Cluster.Spec.ControlPlane.Kind, true, ui.Discard{})
	if plan.Changes = append(plan.Changes, changes...); len(changes) == 0 {
		plan.Result = fleet.Unchanged
	}
	return plan, err
}

// later returns the changes that Create makes after kind has made the cluster.
func later(wanted v1alpha1.KindControlPlane) (changes []string) {
	for _, mirror := range wanted.RegistryMirrors {
		changes = append(changes, "write the mirrors of "+mirror.Registry+" on each Linux node")
	}
	for _, image := range wanted.Images {
		changes = append(changes, "load image "+image+" into each Linux node")
	}
	return changes
}

// WriteText writes the plan for people.
func (p Plan) WriteText(page *ui.Page) error {
	if p.Result == fleet.Unchanged {
		_, err := fmt.Fprintf(page, "cluster %s: exists, nothing to do\n", p.Name)
		return err
	}
	if p.Configuration == "" {
		_, err := fmt.Fprintf(page, "cluster %s: exists; would be changed\n%s", p.Name, lines(p.Changes))
		return err
	}
	_, err := fmt.Fprintf(page, "cluster %s: would be made by kind with\n%s%s", p.Name, p.Configuration,
		lines(p.Changes[1:]))
	return err
}

// lines returns changes for people, one in each line.
func lines(changes []string) string {
	text := ""
	for _, change := range changes {
		text += "  " + change + "\n"
	}
	return text
}

// written returns a configuration in YAML, the form in which kind reads it from a file.
func written(wanted *v1alpha4.Cluster) (string, error) {
	text, err := yaml.Marshal(wanted)
	if err != nil {
		return "", fmt.Errorf("write kind's configuration: %w", err)
	}
	return string(text), nil
}

// look returns the record of a cluster, or the zero record if there is none. there reports
// whether kind has containers of the cluster. If kind has containers, but there is no record, the
// error is an *OtherToolError.
func (c *Clusters) look(name string) (begun record, there bool, err error) {
	begun, ours, err := c.records.get(name)
	if err != nil {
		return begun, false, err
	}
	if there, err = c.exists(name); err != nil {
		return begun, false, err
	}
	if there && !ours {
		return begun, there, &OtherToolError{Name: name}
	}
	return begun, there, nil
}

// OtherToolError reports a cluster of kind that swdt did not make, so that swdt must not change it.
type OtherToolError struct{ Name string }

func (e *OtherToolError) Error() string {
	return fmt.Sprintf("kind has a cluster %s already, which swdt has not made: choose another metadata.name, "+
		"or delete it with `kind delete cluster --name %s`", e.Name, e.Name)
}

// existing gives the Linux nodes of an existing cluster the images and mirrors of the document, and
// returns a report. kind cannot change any other setting: if wanted differs from the configuration
// from which the cluster was made, the error is a *DifferentError.
func (c *Clusters) existing(
	ctx context.Context, doc config.ClusterDocument, one record, wanted []byte, r ui.Reporter,
) (Opened, error) {
	if !bytes.Equal(compact(one.Wanted), wanted) {
		return Opened{}, different(doc, one)
	}
	changes, err := c.provideAndRecord(ctx, one, doc, r)
	if err != nil {
		return Opened{}, err
	}
	found, err := c.describe(ctx, one)
	if found.Result = fleet.Unchanged; len(changes) > 0 {
		found.Result, found.Changes = fleet.Changed, changes
	}
	return found, err
}

// compact removes the indentation from a JSON text. It returns a text that is not JSON unchanged.
func compact(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

// cleanLimit bounds the clean-up after a failed Create.
const cleanLimit = 2 * time.Minute

// deleteAgain is the interval at which the containers of an interrupted Create are deleted again,
// since kind may have made another container meanwhile.
const deleteAgain = 2 * time.Second

// make makes the cluster with kind, which cannot be interrupted. If ctx ends, make deletes the
// containers, so that kind fails and ends too.
func (c *Clusters) make(ctx context.Context, one record, configuration kind.CreateOption, r ui.Reporter) error {
	done := make(chan error, 1)
	go func() {
		done <- c.kind.Create(one.Name, configuration, kind.CreateWithKubeconfigPath(one.Kubeconfig),
			kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false))
	}()
	select {
	case err := <-done:
		return failed(err, "create cluster %s with kind", one.Name)
	case <-ctx.Done():
		r.Step("removing what was made of cluster %s", one.Name)
		c.end(one, done)
		return context.Cause(ctx)
	}
}

// end deletes the containers of a cluster, again and again until kind has ended. The caller deletes what
// is left then, so end ignores failures.
func (c *Clusters) end(one record, done <-chan error) {
	ticks := time.NewTicker(deleteAgain)
	defer ticks.Stop()
	for {
		_ = c.kind.Delete(one.Name, one.Kubeconfig)
		select {
		case <-done:
			return
		case <-ticks.C:
		}
	}
}
