package watch

import (
	"errors"
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// NewNotifier asks the operating system to report changes. If NewNotifier returns an error, the
// caller can run the watch without a notifier.
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

// Watch returns an error for a folder on a network file system, where other machines change files
// without a notification on this machine.
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
				continue // indexers and virus scanners change only a file's attributes; its content is the same
			}
			path = event.Name
		case err, ok := <-n.watcher.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				continue // the error concerns one folder, whose changes the regular looks find
			}
		}
		select {
		case n.events <- path:
		case <-n.closed:
			return
		}
	}
}
