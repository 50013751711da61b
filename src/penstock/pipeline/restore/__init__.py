"""Which messages were live at an instant: the rules, and two engines that apply them to a lake."""
