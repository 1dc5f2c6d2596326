"""Tables, rows and statements that the turn and the resources share."""
