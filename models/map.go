package models

// Map is what f makes of each element of a list, in its order.
func Map[T, R any](list []T, f func(T) R) []R {
	made := make([]R, len(list))
	for i, v := range list {
		made[i] = f(v)
	}
	return made
}
