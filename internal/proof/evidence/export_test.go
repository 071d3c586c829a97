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

// HasNode reports whether the records have a state of this node.
func (r *Recorder) HasNode(name string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.nodes[name]) > 0
}

// HasOutput reports whether the records have output of a container of this namespace.
func (r *Recorder) HasOutput(namespace string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, n := range r.namespaces {
		for _, p := range n.pods {
			for _, o := range p.outputs {
				if n.name == namespace && o.bytes() > 0 {
					return true
				}
			}
		}
	}
	return false
}
