package policies

import (
	"weir/models"
	"weir/models/store"
)

// tellOfSecondFactor records a change of an account's second factor, and notifies its
// person, who may not have made it.
func tellOfSecondFactor(q *store.Queries, actor Actor, user int64, action string, text models.Text) error {
	if err := actor.Audit(q, Change{Action: action, Object: "account", ID: user}); err != nil {
		return err
	}
	return notifyOfSecondFactor(q, user, text)
}

func notifyOfSecondFactor(q *store.Queries, user int64, text models.Text) error {
	return q.Notify([]int64{user}, models.Notification{Kind: models.NotificationSecondFactor, Text: text, Link: "/account"})
}
