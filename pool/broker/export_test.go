package broker

// Waiting is how many requests wait to be decided.
func (s *Service) Waiting() int {
	s.arrivals.mu.Lock()
	defer s.arrivals.mu.Unlock()
	return len(s.arrivals.waiting)
}

// Deciding reports whether requests are decided.
func (s *Service) Deciding() bool { return len(s.arrivals.deciding) > 0 }
