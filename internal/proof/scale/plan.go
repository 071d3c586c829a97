package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Plan has the objects that a run would make.
type Plan struct {
	Cluster string `json:"cluster"` // the API server's URL
	// Namespace is the namespace's name; its random end is written as ….
	Namespace string `json:"namespace"`
	Load      Load   `json:"load"`
	// Others is the number of Services in the cluster, which a run leaves alone.
	Others  int      `json:"others"`
	Objects []Object `json:"objects"`
}

// Object is one kind of object that a run would make, or a number of changes.
type Object struct {
	Kind    string `json:"kind"`
	Count   int    `json:"count"`
	Action  string `json:"action"`  // make, change or remove
	Purpose string `json:"purpose"` // in a few words
}

// NewPlan returns what Run would make, and makes nothing.
func NewPlan(ctx context.Context, c *cluster.Cluster, l Load) (Plan, error) {
	plan := Plan{Cluster: c.Server(), Namespace: namespacePrefix + "…", Load: l, Objects: []Object{
		{"namespace", 1, "make", "holds all others"},
		{"service", l.Services, "make", "with a cluster IP, and without a selector"},
		{"endpointslice", l.slices(), "make", fmt.Sprintf("have %d addresses of %s, to which nothing is sent", l.Endpoints,
			l.Range)},
	}}
	if l.Changes > 0 {
		plan.Objects = append(plan.Objects, Object{"endpointslice", l.Changes, "change", "one endpoint is replaced"})
	}
	plan.Objects = append(plan.Objects, Object{"namespace", 1, "remove", "with all that is in it"})
	var err error
	plan.Others, err = countServices(ctx, c)
	return plan, err
}

// WriteText writes a line for each kind of object.
func (p Plan) WriteText(page *ui.Page) error {
	var rows [][]string
	for _, o := range p.Objects {
		rows = append(rows, []string{fmt.Sprint(o.Count), o.Kind, "would " + o.Action, o.Purpose})
	}
	err := ui.Table(page, []string{"COUNT", "KIND", "ACTION", "PURPOSE"}, rows)
	if err == nil {
		_, err = fmt.Fprintf(page, "all in a namespace %s; the cluster has %d Services of others\n", p.Namespace, p.Others)
	}
	return err
}

// seconds returns a duration in seconds in words.
func seconds(s float64) string { return ui.Seconds(time.Duration(s * float64(time.Second))) }
