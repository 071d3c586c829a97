package viapod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// records is the folder with a record of each pod that this user's swdts have made. A record is written
// before its pod is made, and has a lock that its swdt holds; a lock that is free belongs to a swdt that
// has ended. So at each moment, a record leads to each pod, also to the pods of a swdt that was killed.
type records struct {
	folder string
	err    error
}

const (
	recordEnd, lockEnd = ".json", ".lock"
	maxRecord          = 16 << 10 // bytes
	// keepRecords is how long a record is kept whose pod could not be removed. The pod itself has ended
	// long before.
	keepRecords = 7 * 24 * time.Hour
)

// record is a pod that swdt has made.
type record struct {
	Server    string    `json:"server"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	UID       string    `json:"uid"` // "" until the pod was made
	Node      string    `json:"node"`
	Image     string    `json:"image"`
	Container string    `json:"container"` // the ID of the running container; "" until it runs
	Keep      bool      `json:"keep"`      // stays for the next contact
	Begun     time.Time `json:"begun"`

	path string
	lock *os.File
}

func (w *Way) records() records {
	if w.o.Records != "" {
		return records{folder: w.o.Records}
	}
	data, err := localfile.DataFolder()
	return records{folder: filepath.Join(data, "swdt", "via"), err: err}
}

// begin writes the record of a pod that is about to be made.
func (s records) begin(server string, pod cluster.Pod, o Options) (*record, error) {
	if s.err != nil {
		return nil, fmt.Errorf("record the pod: %w", s.err)
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("record the pod: %w", err)
	}
	r := &record{Server: server, Namespace: pod.Namespace, Pod: pod.Name, Node: o.Node, Image: o.Image, Keep: o.Keep,
		Begun: time.Now(), path: filepath.Join(s.folder, pod.Name)}
	lock, err := localfile.Claim(r.path + lockEnd)
	if err != nil {
		return nil, fmt.Errorf("record the pod: %w", err)
	}
	r.lock = lock
	if err := r.save(); err != nil {
		r.forget()
		return nil, err
	}
	return r, nil
}

func (r *record) save() error {
	text, err := json.Marshal(r)
	if err == nil {
		err = localfile.Replace(r.path+recordEnd, text)
	}
	if err != nil {
		return fmt.Errorf("record the pod: %w", err)
	}
	return nil
}

// release leaves the record for the next contact.
func (r *record) release() { r.lock.Close() }

// forget removes the record.
func (r *record) forget() {
	_ = os.Remove(r.path + recordEnd) // a record without a pod does no harm
	_ = os.Remove(r.path + lockEnd)
	r.lock.Close()
}

// claimed returns the records of this cluster whose swdts have ended, each with its lock. Records that do
// not fit are not locked, not even for a moment: ways to other nodes look for theirs at the same time.
func (s records) claimed(server string, fits func(*record) bool) (all []*record) {
	entries, err := os.ReadDir(s.folder)
	if s.err != nil || err != nil {
		return nil // there is no folder before the first pod
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), recordEnd)
		if !ok {
			continue
		}
		path := filepath.Join(s.folder, name)
		if peeked, err := read(path); fits != nil && (err != nil || !fits(peeked)) {
			continue
		}
		if r := claim(path, server); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// claim returns a record of this cluster if its swdt has ended.
func claim(path, server string) *record {
	lock, err := localfile.Claim(path + lockEnd)
	if err != nil {
		return nil // its swdt still works
	}
	r, err := read(path)
	r.lock = lock
	switch {
	case err != nil || time.Since(r.Begun) > keepRecords:
		r.forget()
		return nil
	case r.Server != server:
		r.release()
		return nil
	}
	return r
}

// read returns a record without its lock. With an error, it has only the path.
func read(path string) (*record, error) {
	r := &record{path: path}
	text, err := readBounded(path + recordEnd)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err == nil && !r.ours() {
		err = errors.New("it is no record")
	}
	return r, err
}

// ours reports whether the record names a pod that swdt can have made.
func (r *record) ours() bool {
	return strings.HasPrefix(r.Pod, namePrefix) && filepath.Base(r.path) == r.Pod && r.Namespace != ""
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// kept returns the record of a pod that an earlier swdt has left for this node, if the pod still runs
// and has at least half of its life left.
func (w *Way) kept(ctx context.Context) *record {
	var found *record
	fits := func(r *record) bool {
		return r.Keep && r.Node == w.o.Node && r.Namespace == w.o.Namespace && (r.Image == w.o.Image || !w.named) &&
			time.Since(r.Begun) < deadline*time.Second/2
	}
	for _, r := range w.records().claimed(w.c.Server(), fits) {
		if found != nil {
			r.release()
			continue
		}
		if running, err := w.runs(ctx, r); err != nil || !running {
			r.release()
			continue
		}
		found = r
	}
	return found
}

// tidy removes the pods that killed swdts of this user have left in the cluster, and swdt's pods that have
// ended, whoever has made them. A failure is a warning, since the connection does not depend on it.
func (w *Way) tidy(ctx context.Context) {
	for _, r := range w.records().claimed(w.c.Server(), nil) {
		running, err := w.runs(ctx, r)
		if err == nil && running && r.Keep && time.Since(r.Begun) < deadline*time.Second/2 {
			r.release()
			continue
		}
		if err := w.removePod(ctx, r); err != nil {
			w.o.Reporter.Warn("%v", err)
			r.release()
			continue
		}
		r.forget()
		if running {
			w.o.Reporter.Info("removed pod %s/%s, which an earlier swdt has left", r.Namespace, r.Pod)
		}
	}
	w.removeEnded(ctx)
}

// removeEnded removes swdt's pods that have ended. Their swdts may have run on other machines.
func (w *Way) removeEnded(ctx context.Context) {
	pods := w.c.Clientset().CoreV1().Pods(w.o.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: viaLabel, Limit: 200})
	if err != nil {
		w.o.Reporter.Warn("%v", w.fail("list the pods of namespace "+w.o.Namespace,
			w.podPermission("list", w.o.Namespace), err))
		return
	}
	for _, pod := range list.Items {
		ended := pod.Status.Phase == "Failed" || pod.Status.Phase == "Succeeded"
		if !ended || pod.Labels[viaLabel] != pod.Name || pod.DeletionTimestamp != nil {
			continue
		}
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil {
			w.o.Reporter.Debug("remove pod %s, which has ended: %v", pod.Name, err)
		}
	}
}
