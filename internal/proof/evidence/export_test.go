package evidence

// HasEvent reports whether the records have an event with this reason.
func (r *Recorder) HasEvent(namespace, reason string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, n := range r.namespaces {
		for _, e := range n.events {
			if n.name == namespace && e.Reason == reason {
				return true
			}
		}
	}
	return false
}
