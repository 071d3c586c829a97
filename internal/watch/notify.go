package watch

import (
	"errors"
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// NewNotifier asks the operating system to tell of changes. Where it cannot,
// Run works without.
func NewNotifier() (Notifier, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch for changed files: %w", err)
	}
	n := &notifier{watcher: watcher, events: make(chan string), closed: make(chan struct{})}
	go n.forward()
	return n, nil
}

type notifier struct {
	watcher *fsnotify.Watcher
	events  chan string
	closed  chan struct{}
}

func (n *notifier) Events() <-chan string { return n.events }

func (n *notifier) Close() error {
	close(n.closed)
	return n.watcher.Close()
}

// Watch refuses folders on network file systems, of which others change files
// without our hearing of it.
func (n *notifier) Watch(folder string) error {
	if onNetwork(folder) {
		return fmt.Errorf("watch %s: it is on a network file system", folder)
	}
	return n.watcher.Add(folder)
}

func (n *notifier) forward() {
	defer close(n.events)
	for {
		path := ""
		select {
		case event, ok := <-n.watcher.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod {
				continue // indexers and virus scanners: the content is the same
			}
			path = event.Name
		case err, ok := <-n.watcher.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				continue // of one folder: looking now and then makes it good
			}
		}
		select {
		case n.events <- path:
		case <-n.closed:
			return
		}
	}
}
