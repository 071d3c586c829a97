package evidence

import (
	"context"
	"errors"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// output is the output of one container, of which the last part is kept.
type output struct {
	container string // its name
	id        string // its ID, another one after each restart
	stop      context.CancelFunc

	mutex sync.Mutex
	tail  tail
	err   error // why it is not whole
}

// errTooMany means that the output of more than maxFollowed containers was to be read.
var errTooMany = errors.New("the output of too many other containers was read at the same time")

// text returns the last part of the output, how many bytes before it are missing, and why it is not whole.
func (o *output) text() (string, int64, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return string(o.tail.kept), o.tail.dropped, o.err
}

func (o *output) bytes() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return cap(o.tail.kept)
}

func (o *output) failed(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.err = err
}

// read keeps what a container prints, until it has ended.
func (o *output) read(from io.Reader) error {
	buffer := make([]byte, 16<<10)
	from = io.LimitReader(from, maxRead)
	for {
		n, err := from.Read(buffer)
		o.mutex.Lock()
		o.tail.add(buffer[:n], maxOutput)
		o.mutex.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tail is the last part of a text.
type tail struct {
	kept    []byte
	dropped int64 // bytes before it
}

// add adds text, and drops what is beyond the limit at the beginning.
func (t *tail) add(text []byte, limit int) {
	t.kept = append(t.kept, text...)
	if more := len(t.kept) - 2*limit; more > 0 { // moves the rest only now and then
		more += limit
		t.dropped += int64(more)
		t.kept = append(t.kept[:0], t.kept[more:]...)
	}
}

// follow reads the output of each container of a pod that has begun. The mutex of the recorder is held.
func (r *Recorder) follow(ctx context.Context, known *pod, p *corev1.Pod) {
	for _, status := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		begun := status.State.Running != nil || status.State.Terminated != nil
		if !begun || known.has(status) || len(known.outputs) >= maxFollowed {
			continue
		}
		o := &output{container: status.Name, id: status.ContainerID}
		ctx, cancel := context.WithCancel(ctx)
		o.stop = cancel
		known.outputs = append(known.outputs, o)
		select {
		case r.followed <- struct{}{}:
		default:
			cancel()
			o.err = errTooMany
			continue
		}
		r.running.Go(func() {
			defer func() { <-r.followed }()
			defer cancel()
			request := r.client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{
				Container: o.container, Follow: true, Timestamps: true})
			body, err := request.Stream(ctx)
			if err == nil {
				defer body.Close()
				err = o.read(body)
			}
			if err != nil && ctx.Err() == nil {
				o.failed(err)
			}
		})
	}
}

// has reports whether the output of this container is known.
func (p *pod) has(status corev1.ContainerStatus) bool {
	for _, o := range p.outputs {
		if o.container == status.Name && o.id == status.ContainerID {
			return true
		}
	}
	return false
}
