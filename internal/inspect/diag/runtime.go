package diag

import (
	"context"
	"errors"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/criclient"
)

// containers stores the tables of `swdt cri`, from the container runtime.
func containers(ctx context.Context, t *Task) error {
	facts, err := t.Node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	client, err := t.runtime(ctx)
	if err != nil {
		return err
	}
	defer client.Close() // an error is harmless, since nothing was written
	var errs []error
	for _, q := range []struct {
		name string
		ask  criclient.Question
	}{
		{"runtime-version", criclient.Version}, {"runtime-status", criclient.Status}, {"pods", criclient.Pods},
		{"containers", criclient.Containers}, {"images", criclient.Images(facts.GetBuild())},
		{"container-stats", criclient.Stats},
	} {
		answer, err := q.ask(ctx, client)
		if err == nil {
			err = t.Table(q.name, answer.JSON, answer.Text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// runtime connects to the container runtime at once. If the connection were opened only by
// the first call, the error of that call would not have the reason as a typed error.
func (t *Task) runtime(ctx context.Context) (*criclient.Client, error) {
	return criclient.Open(ctx, t.Node, t.Document.RuntimePipe(), criclient.Options{DialNow: true})
}
