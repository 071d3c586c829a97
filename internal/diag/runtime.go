package diag

import (
	"context"
	"errors"
	"net"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/criclient"
)

// containers are what the container runtime tells: what `swdt cri` asks it.
func containers(ctx context.Context, t *Task) error {
	facts, err := t.Node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	client, err := t.runtime(ctx)
	if err != nil {
		return err
	}
	defer client.Close() // it was only read from
	var errs []error
	for _, q := range []struct {
		name string
		ask  criclient.Question
	}{
		{"runtime-version", criclient.Version}, {"runtime-status", criclient.Status}, {"pods", criclient.Pods},
		{"containers", criclient.Containers}, {"images", criclient.Images(facts.GetBuild())}, {"container-stats", criclient.Stats},
	} {
		answer, err := q.ask(ctx, client)
		if err == nil {
			err = t.Table(q.name, answer.JSON, answer.Text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// runtime connects to the container runtime. The connection is made here and not
// with the first question, whose error would not say that nobody listens.
func (t *Task) runtime(ctx context.Context) (*criclient.Client, error) {
	first, err := t.Node.DialPipe(ctx, t.Document.RuntimePipe())
	if err != nil {
		return nil, err
	}
	unused := make(chan net.Conn, 1)
	unused <- first
	return criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		select {
		case conn := <-unused:
			return conn, nil
		default:
			return t.Node.DialPipe(ctx, t.Document.RuntimePipe())
		}
	})
}
