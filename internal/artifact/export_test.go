package artifact

// Limit bounds what archives may become, bytes.
func Limit(s *Store, file, total int64) { s.limits = limits{file, total} }
