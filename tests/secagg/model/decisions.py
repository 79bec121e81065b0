"""PROVISIONAL"""
def shares(client, members, sizes): return members.bit_count() >= sizes.min_clients and members>>client&1
def masks(held, threshold): return held.bit_count() >= threshold
def agrees(client, members, neighbours, held, survivors, sizes, threshold):
    around = neighbours & survivors
    return bool(survivors>>client&1 and not survivors & ~members and not around & ~held and survivors.bit_count() >= sizes.min_clients and around.bit_count()>=threshold)
def unmasks(signers, around, proven, threshold): return signers.bit_count()>=threshold and around == proven
def opens(survived): return (survived,)
def context(ranker): return ranker
def claim(context, members, root, survivors): return (context, members, root, survivors)
def sealed_for(sender, receiver):
    return sender.context == receiver.context and bool(sender.neighbours >> receiver.client & 1)
