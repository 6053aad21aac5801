package workspaces

import (
	"weir/models"
	"weir/policies"
)

// Foreign lists what other generations or copies of this installation run beside it, for
// those who may read its capacity. It is left alone.
func (s *Service) Foreign(actor policies.Actor) ([]models.Foreign, error) {
	if err := s.access.Check(actor, policies.Platform, policies.CapacityRead); err != nil || s.FindForeign == nil {
		return nil, err
	}
	return s.FindForeign()
}
