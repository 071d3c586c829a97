package kindcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/swdt-dev/swdt/internal/config"
)

// DifferentError reports a cluster that was made from another document.
type DifferentError struct {
	Name string
	// Differences are the fields of the document that differ.
	Differences []config.Problem
	// Unknown is the reason why the differences are not known; nil: they are known.
	Unknown error
}

func (e *DifferentError) Error() string {
	text := fmt.Sprintf("cluster %s was made from other settings, and kind cannot change a cluster: "+
		"delete it with `swdt cluster delete`, or undo the changes of the file", e.Name)
	for _, d := range e.Differences {
		d.Remedy = ""
		text += "\n  " + d.String()
	}
	if e.Unknown != nil {
		text += fmt.Sprintf("\n  the differences are not known: %v", e.Unknown)
	}
	return text
}

func (e *DifferentError) Unwrap() error { return e.Unknown }

// different returns the error for a cluster whose record has another configuration than a document.
func different(doc config.ClusterDocument, one record) error {
	found, err := differences(doc, one)
	return &DifferentError{Name: one.Name, Differences: found, Unknown: err}
}

// CheckSettings compares a document with the settings from which its cluster was made. If they differ,
// the error is a *DifferentError; if swdt has made no such cluster, it is ErrNoCluster.
func (c *Clusters) CheckSettings(doc config.ClusterDocument) error {
	one, err := c.made(doc.Cluster.Metadata.Name)
	if err != nil {
		return err
	}
	wanted, err := Config(doc.Cluster)
	if err != nil {
		return err
	}
	text, err := json.Marshal(wanted)
	if err == nil && !bytes.Equal(compact(one.Wanted), text) {
		err = different(doc, one)
	}
	return err
}

// differences returns a problem for each field of the document whose value is not that of the cluster.
func differences(doc config.ClusterDocument, one record) ([]config.Problem, error) {
	var made v1alpha4.Cluster
	if err := json.Unmarshal(one.Wanted, &made); err != nil {
		return nil, fmt.Errorf("read the settings of cluster %s in its record: %w", one.Name, err)
	}
	wanted, err := Config(doc.Cluster)
	if err != nil {
		return nil, err
	}
	was, is := settings(&made), settings(wanted)
	problems := []config.Problem{}
	for i := range is {
		if was[i].value == is[i].value {
			continue
		}
		problems = append(problems, doc.Problem(is[i].field,
			fmt.Sprintf("is %s, but the cluster was made with %s", is[i].value, was[i].value),
			"undo the change, or make the cluster again: `swdt cluster delete`, `swdt cluster create`"))
	}
	return problems, nil
}

// setting is the value of a field of the document, for people.
type setting struct{ field, value string }

// settings returns the settings of a document that are in kind's configuration, always in the same order.
func settings(c *v1alpha4.Cluster) []setting {
	const kind = "spec.controlPlane.kind."
	var image string
	if len(c.Nodes) > 0 {
		image = c.Nodes[0].Image
	}
	port := "any free port"
	if c.Networking.APIServerPort > 0 {
		port = strconv.Itoa(int(c.Networking.APIServerPort))
	}
	return []setting{
		{kind + "image", image},
		{kind + "workers", strconv.Itoa(max(len(c.Nodes)-1, 0))},
		{kind + "apiServerAddress", c.Networking.APIServerAddress},
		{kind + "apiServerPort", port},
		{kind + "apiServerNames", certificateNames(c)},
		{"spec.network.podSubnet", c.Networking.PodSubnet},
		{"spec.network.serviceSubnet", c.Networking.ServiceSubnet},
	}
}

// certificateNames returns the names that certificatePatch has added to the API server's certificate.
func certificateNames(c *v1alpha4.Cluster) string {
	if len(c.KubeadmConfigPatchesJSON6902) == 0 {
		return "empty"
	}
	var operations []struct {
		Value string `json:"value"`
	}
	patch := c.KubeadmConfigPatchesJSON6902[0].Patch
	if json.Unmarshal([]byte(patch), &operations) != nil {
		return patch
	}
	var names []string
	for _, operation := range operations {
		names = append(names, operation.Value)
	}
	return strings.Join(names, ", ")
}
