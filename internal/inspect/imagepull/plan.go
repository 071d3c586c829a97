package imagepull

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/node/criclient"
)

// Step is the plan for one image on a node.
type Step struct {
	Image    string
	Digest   string // in the registry; "": it could not be read from your machine
	NewBytes int64  // that the pull fetches; 0: not known
	Pull     bool   // the node lacks it, and may pull it
	Refused  string // why the node should not pull it; "": nothing speaks against it
	Note     string // for the reader
}

func (s Step) result() ImageResult {
	r := ImageResult{Image: s.Image, Digest: s.Digest, NewBytes: s.NewBytes, Result: Unchanged, Message: s.Note}
	switch {
	case s.Refused != "" && !s.Pull:
		r.Result, r.Message = Refused, s.Refused
	case s.Pull:
		r.Result = NotBegun
	}
	return r
}

// Plan returns the steps of a node. has are the images that the node has by their names. force pulls what the check refuses.
func Plan(check imagecheck.Report, node string, images []string, has map[string]criclient.Pulled, force bool) (steps []Step) {
	for _, image := range images {
		steps = append(steps, plan(check, node, image, has, force))
	}
	return steps
}

func plan(check imagecheck.Report, node, image string, has map[string]criclient.Pulled, force bool) Step {
	step := Step{Image: image}
	present, named := has[image]
	on, digest, known := find(check, node, image)
	if !known {
		step.Pull = !named
		step.Note = "not checked: " + unread(check, image)
		return step
	}
	step.Digest, step.NewBytes = digest, on.NewBytes
	if named && present.Is(digest) {
		step.NewBytes = 0
		return step
	}
	switch on.Result {
	case imagecheck.NoMatch:
		step.Refused = fmt.Sprintf("containerd %s on Windows %s takes none of its manifests", on.Containerd, on.Windows)
	case imagecheck.Refused:
		step.Refused = fmt.Sprintf("Windows %s does not run it: %s", on.Windows, on.Runs)
	}
	step.Pull = step.Refused == "" || force
	return step
}

// find returns what the check found about an image on a node, and the image's digest.
func find(check imagecheck.Report, node, image string) (imagecheck.NodeReport, string, bool) {
	for _, i := range check.Images {
		if i.Image != image {
			continue
		}
		for _, on := range i.Nodes {
			if on.Node == node {
				return on, i.Digest, true
			}
		}
	}
	return imagecheck.NodeReport{}, "", false
}

func unread(check imagecheck.Report, image string) string {
	for _, u := range check.Unread {
		if u.Name == image {
			return u.Why
		}
	}
	return "it was not read"
}

// Results returns the results of a plan before anything is pulled.
func Results(plan []Step) (all []ImageResult) {
	for _, step := range plan {
		all = append(all, step.result())
	}
	return all
}

// RefusedError reports images that a node does not take, or does not run.
type RefusedError struct{ Why []string }

func (e *RefusedError) Error() string {
	return "refuse to pull " + strings.Join(e.Why, "; ") + ": name an image for this Windows, see `swdt image check`, or pull it with --force"
}

// Refusal returns a RefusedError if a plan has images that the node should not pull.
func Refusal(plan []Step) error {
	var why []string
	for _, step := range plan {
		if step.Refused != "" && !step.Pull {
			why = append(why, step.Image+": "+step.Refused)
		}
	}
	if why == nil {
		return nil
	}
	return &RefusedError{Why: why}
}
