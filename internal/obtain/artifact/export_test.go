package artifact

// Limit bounds the unpacked size of archives, in bytes.
func Limit(s *Store, file, total int64) { s.limits = limits{file, total} }
