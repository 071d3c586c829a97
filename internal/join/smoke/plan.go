package smoke

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Plan has the objects that a run would make.
type Plan struct {
	Cluster string   `json:"cluster"` // the API server's URL
	Objects []Object `json:"objects"`
	// Leftovers are the namespaces of killed runs that a run would remove.
	Leftovers []string `json:"leftovers"`
}

// Object is one object that a run would make.
type Object struct {
	Kind string `json:"kind"`
	// Name is the object's name. The name of the namespace ends in …, since that end is random.
	Name  string `json:"name"`
	Node  string `json:"node"`  // the node of a pod; "" if the scheduler chooses the node
	Image string `json:"image"` // the image of a pod
	// Purpose describes the object in a few words.
	Purpose string `json:"purpose"`
}

// Names returns the objects for -o name.
func (p Plan) Names() (all []string) {
	for _, o := range p.Objects {
		all = append(all, o.Kind+"/"+o.Name)
	}
	return all
}

// NewPlan returns the objects that Run would make, and makes none. If the cluster cannot be tested,
// it returns the same error as Run.
func NewPlan(ctx context.Context, c *cluster.Cluster, o Options) (Plan, error) {
	o = o.completed(c)
	plan := Plan{Cluster: c.Server(), Objects: []Object{}, Leftovers: []string{}}
	found, err := find(ctx, c, o)
	if err != nil {
		return plan, err
	}
	plan.Objects = append(plan.Objects,
		Object{Kind: "namespace", Name: prefix + "…", Purpose: "holds all others, and is removed at the end"},
		Object{Kind: "serviceaccount", Name: account, Purpose: "has no rights and no token"},
		Object{Kind: "service", Name: serverName, Purpose: "is the Service that Windows pods reach"})
	if len(found.linux) > 0 {
		plan.Objects = append(plan.Objects,
			Object{Kind: "pod", Name: serverName, Image: o.LinuxImage, Purpose: "is the server on a Linux node"})
	}
	for i, n := range found.windows {
		object := Object{Kind: "pod", Name: podName(i), Node: n.Name, Image: o.Image, Purpose: "tests node " + n.Name}
		if unfit(n) == nil {
			plan.Objects = append(plan.Objects, object)
		}
	}
	left, err := namespaces{c}.leftovers(ctx, time.Now())
	for _, namespace := range left {
		plan.Leftovers = append(plan.Leftovers, namespace.Name)
	}
	return plan, err
}

// WriteText writes a line for each object.
func (p Plan) WriteText(page *ui.Page) error {
	var rows [][]string
	for _, o := range p.Objects {
		rows = append(rows, []string{o.Kind, o.Name, "would be made", o.Node, o.Image, o.Purpose})
	}
	for _, name := range p.Leftovers {
		rows = append(rows, []string{"namespace", name, "would be removed", "", "", "is left of a killed run"})
	}
	return ui.Table(page, []string{"KIND", "NAME", "ACTION", "NODE", "IMAGE", "PURPOSE"}, rows)
}
