//go:build windows

package main

import (
	"context"
	"time"

	"github.com/Microsoft/go-winio"
	eventsapi "github.com/containerd/containerd/api/services/ttrpc/events/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/ttrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	eventsKept    = 1024
	eventLimit    = 5 * time.Second
	eventInterval = 200 * time.Millisecond
	eventAttempts = 150 // half a minute without containerd
)

// publisher sends events to containerd in their order, including events that happened while
// containerd was not running.
type publisher struct {
	namespace string
	queue     chan *eventsapi.ForwardRequest
}

func publish(ctx context.Context, address, namespace string) *publisher {
	p := &publisher{namespace, make(chan *eventsapi.ForwardRequest, eventsKept)}
	go p.run(ctx, address)
	return p
}

func (p *publisher) send(topic string, event proto.Message) {
	value, err := proto.Marshal(event)
	if err != nil {
		return // cannot happen: these messages can always be encoded
	}
	select {
	case p.queue <- &eventsapi.ForwardRequest{Envelope: &types.Envelope{
		Timestamp: timestamppb.Now(), Namespace: p.namespace, Topic: topic,
		Event: &anypb.Any{TypeUrl: string(event.ProtoReflect().Descriptor().FullName()), Value: value},
	}}:
	default: // containerd has been down for a long time; it asks for all states when it starts
	}
}

func (p *publisher) run(ctx context.Context, address string) {
	var client *ttrpc.Client
	defer func() {
		if client != nil {
			_ = client.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-p.queue:
			client = forward(ctx, client, address, event)
		}
	}
}

// forward sends one event over client or, if that is nil or fails, over a new client. It returns
// the client for the next event; nil if there is none. The event is lost after eventAttempts
// failures.
func forward(ctx context.Context, client *ttrpc.Client, address string, event *eventsapi.ForwardRequest) *ttrpc.Client {
	tick := time.NewTicker(eventInterval)
	defer tick.Stop()
	for range eventAttempts {
		if client == nil {
			client = dialEvents(ctx, address)
		}
		if client != nil {
			limited, cancel := context.WithTimeout(ctx, eventLimit)
			_, err := eventsapi.NewEventsClient(client).Forward(limited, event)
			cancel()
			if err == nil {
				return client
			}
			_ = client.Close()
			client = nil
		}
		select {
		case <-ctx.Done():
			return client
		case <-tick.C:
		}
	}
	return client
}

func dialEvents(ctx context.Context, address string) *ttrpc.Client {
	ctx, cancel := context.WithTimeout(ctx, eventLimit)
	defer cancel()
	conn, err := winio.DialPipeContext(ctx, address)
	if err != nil {
		return nil // forward tries again
	}
	return ttrpc.NewClient(conn)
}
